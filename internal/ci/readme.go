package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// runReadme runs the two commands that a README shows under "Try it now". What
// the first prints on standard output must stand in the README.
func runReadme(ctx context.Context, out io.Writer, args []string) error {
	if len(args) != 1 {
		return errUsage
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	commands := tryItNow(string(text))
	if len(commands) != 2 {
		return fmt.Errorf("%s has %d commands under \"Try it now\", want one to run and one to test", args[0], len(commands))
	}
	fmt.Fprintln(out, "$", commands[1])
	if err := pass(ctx, out, "bash", "-ec", commands[1]); err != nil {
		return err
	}
	fmt.Fprintln(out, "$", commands[0])
	printed, err := output(ctx, "bash", "-ec", commands[0])
	if err != nil {
		return err
	}
	out.Write(printed)
	return shows(string(text), string(printed))
}

// tryItNow returns the commands of the first block under the heading.
func tryItNow(text string) (commands []string) {
	under, inBlock := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		heading := !inBlock && strings.HasPrefix(line, "#")
		switch {
		case !under:
			under = heading && strings.HasPrefix(strings.TrimLeft(line, "# "), "Try it now")
		case heading, inBlock && strings.HasPrefix(line, "```"):
			return commands
		case !inBlock:
			inBlock = line == "```sh"
		case line != "" && !strings.HasPrefix(line, "#"):
			commands = append(commands, line)
		}
	}
	return commands
}

// shows compares what was printed with the lines of a README.
func shows(text, printed string) error {
	shown := map[string]bool{}
	for line := range strings.Lines(text) {
		shown[strings.TrimRight(line, "\r\n")] = true
	}
	var missing []error
	lines := 0
	for line := range strings.Lines(printed) {
		lines++
		if line = strings.TrimRight(line, "\r\n"); !shown[line] {
			missing = append(missing, fmt.Errorf("the README shows another output of its command; missing: %s", line))
		}
	}
	if lines < 2 {
		missing = append(missing, errors.New("the command of the README prints next to nothing"))
	}
	return errors.Join(missing...)
}
