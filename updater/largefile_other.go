//go:build !linux

package updater

const largeFile = 0 // elsewhere every file may be large
