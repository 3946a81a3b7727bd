package updater_test

import (
	"errors"
	"testing"

	"github.com/carddata/carddata-go/updater"
)

func TestNegativeOption(t *testing.T) {
	for i, o := range []updater.CallOption{updater.WithWait(-1, 0), updater.WithWait(0, -1)} {
		if _, err := newClient(t, newMock()).Download(t.Context(), "job-1", o); !errors.Is(err, updater.ErrInvalidArgument) {
			t.Errorf("negative option %d: %v", i, err)
		}
	}
}
