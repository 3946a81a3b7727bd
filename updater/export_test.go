package updater

// ErrNotResumable lets tests of the package tell it from the other cases of ErrChanged.
var ErrNotResumable = errNotResumable
