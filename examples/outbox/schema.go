package main

import (
	_ "embed"
	"io"
	"log/slog"
	"strings"
)

//go:embed schema.sql
var schemaSQL string

// schema returns the statements that create the tables, for a database whose
// identity columns are declared so.
func schema(identity string) string { return strings.ReplaceAll(schemaSQL, "{{identity}}", identity) }

// quiet takes what River logs about migrations.
var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))
