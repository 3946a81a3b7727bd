package updater

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
)

// metadata describes the bytes of a partial or a complete file.
type metadata struct {
	Format   int     `json:"format"`
	Resource string  `json:"resource"` // a hash that identifies the result
	Boot     string  `json:"boot"`     // identifies the machine's run that wrote the file
	Version  version `json:"version"`

	// For a complete file:
	Size     int64  `json:"size,omitempty"`
	Modified int64  `json:"modified,omitempty"` // in nanoseconds since 1970
	SHA256   string `json:"sha_256,omitempty"`
	Verified bool   `json:"verified,omitempty"`
}

const (
	// Raise metadataFormat if older partial files must not be resumed. The files of formats
	// below 2 may have gaps, and formats below 4 have other members.
	metadataFormat = 4
	maxMetadata    = 64 << 10
)

func (p *partial) metadataName() string { return p.name + ".json" }

// resumePoint returns the version of the content that an earlier call left a part of, and the
// offset to resume from. It leaves out the last byte, so that the service is asked even about
// complete content.
func (p *partial) resumePoint(resource string) (version, int64) {
	info, err := p.file.Stat()
	if err != nil || info.Size() <= 1 {
		return version{}, 0
	}
	m, ok := p.readMetadata(p.metadataName(), resource)
	// After a crash of the machine the file may have any content.
	if !ok || m.Boot != bootID() || m.Version.Validator == "" || m.Version.Length >= 0 && info.Size() > m.Version.Length {
		return version{}, 0
	}
	return m.Version, info.Size() - 1
}

// current returns the metadata of the file at the path, if the service can be asked whether
// the file is current. The file must have its recorded size and time. It must also still be
// private, so that a private file replaces one that others can read.
func (p *partial) current(resource string) metadata {
	info, err := os.Lstat(p.path)
	if err != nil || !info.Mode().IsRegular() || !isPrivate(info.Mode()) {
		return metadata{}
	}
	m, ok := p.readMetadata(p.record, resource)
	if !ok || m.SHA256 == "" || m.Size != info.Size() || m.Modified != info.ModTime().UnixNano() {
		return metadata{}
	}
	return m
}

func (p *partial) readMetadata(name, resource string) (m metadata, ok bool) {
	file, err := os.OpenFile(name, os.O_RDONLY|withoutWaiting, 0)
	if err != nil {
		return m, false
	}
	defer file.Close()
	if !isNamed(file) {
		return m, false
	}
	data, err := io.ReadAll(io.LimitReader(file, maxMetadata))
	ok = err == nil && json.Unmarshal(data, &m) == nil
	return m, ok && m.Format == metadataFormat && m.Resource == resource
}

// writeMetadata replaces the metadata. If the process is killed meanwhile, there is none: half
// an object is not JSON.
func (p *partial) writeMetadata(name string, m metadata) error {
	m.Format, m.Boot = metadataFormat, bootID()
	data, _ := json.Marshal(m) // it has no type that could fail to encode
	remove(name)
	file, err := createPrivate(name)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Close()); err != nil {
		remove(name)
	}
	return err
}

// bootID identifies the machine's current run, if the system tells.
var bootID = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
})
