package transport

import (
	"runtime"
	"runtime/debug"
	"sync"
)

const modulePath = "github.com/carddata/carddata-go"

// library names this module in its version as the program was built with it.
var library = sync.OnceValue(func() string {
	version := "devel"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == modulePath && module.Version != "" && module.Version[0] == 'v' {
				version = module.Version
			}
		}
	}
	return "carddata-go/" + version + " " + runtime.Version()
})

func (s *Settings) userAgent() string {
	if s.UserAgent == "" {
		return library()
	}
	return s.UserAgent + " " + library()
}
