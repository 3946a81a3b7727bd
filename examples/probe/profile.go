package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/carddata/carddata-go/internal/probe"
)

// A profile is what the fakes of this module take to behave like the service. It
// has the points that were observed.
type profile struct {
	Version int                 `json:"version"`
	Points  map[string][]string `json:"points"`
}

// newProfile takes the observed points.
func newProfile(points []probe.Point) profile {
	p := profile{1, map[string][]string{}}
	for _, point := range points {
		if point.State == probe.Observed {
			p.Points[point.ID] = point.Answer
		}
	}
	return p
}

// marshal returns the profile's JSON.
func (p profile) marshal() []byte {
	data, _ := json.MarshalIndent(p, "", "  ")
	return append(data, '\n')
}

// parseProfile reads a profile.
func parseProfile(data []byte) (p profile, err error) {
	if json.Unmarshal(data, &p) != nil || p.Version != 1 {
		return p, errors.New("not a profile of version 1")
	}
	return p, nil
}

// differences says where the service is not as before. Points that were not
// observed both times are no difference, nor is the order of what one lists.
func (p profile) differences(points []probe.Point) (list []string) {
	for _, point := range points {
		before, known := p.Points[point.ID]
		same := slices.Equal(slices.Sorted(slices.Values(before)), slices.Sorted(slices.Values(point.Answer)))
		if known && (point.State == probe.Observed || point.State == probe.Contradicted) && !same {
			list = append(list, fmt.Sprintf("%s: %s; in the profile: %s", point.ID, strings.Join(point.Answer, ", "), strings.Join(before, ", ")))
		}
	}
	return list
}
