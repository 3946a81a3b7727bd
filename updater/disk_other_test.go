//go:build !linux

package updater_test

func (job child) prepare() error { return nil }
