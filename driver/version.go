package driver

import (
	"cmp"
	"runtime/debug"
	"slices"
	"strings"
)

const modulePath = "github.com/shardkey/shardkey"

// Version returns the version of shardkey in the program, for example "v0.1.0". In a program
// of shardkey's repository that is no release it is "(devel)", with the commit if the build
// recorded it. It is also "(devel)" if a replace directive names a directory.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return devel
	}
	return versionOf(info)
}

const devel = "(devel)"

// versionOf returns the version that a build recorded.
func versionOf(info *debug.BuildInfo) string {
	isShardkey := func(m *debug.Module) bool { return m.Path == modulePath }
	version := ""
	if i := slices.IndexFunc(info.Deps, isShardkey); isShardkey(&info.Main) {
		version = info.Main.Version
	} else if i >= 0 {
		m := info.Deps[i]
		if m.Replace != nil {
			m = m.Replace
		}
		version = m.Version
	}
	version = cmp.Or(version, devel)
	// The commit is that of the main module's repository.
	if version != devel || info.Main.Path != modulePath && !strings.HasPrefix(info.Main.Path, modulePath+"/") {
		return version
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if commit := settings["vcs.revision"]; commit != "" {
		version += " " + commit[:min(12, len(commit))]
	}
	if settings["vcs.modified"] == "true" {
		version += "+dirty"
	}
	return version
}
