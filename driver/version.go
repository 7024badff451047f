package driver

import (
	"cmp"
	"runtime/debug"
	"slices"
	"strings"
)

const modulePath = "github.com/shardkey/shardkey"

// Version returns the version of shardkey in the program, for example "v0.1.0". In a program that was
// built in a clone of shardkey's repository, it has the commit. It is "(devel)" if the build recorded
// none, for example if a replace directive names a directory.
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
	if (version == "" || version == devel) && strings.HasPrefix(info.Main.Path, modulePath+"/") {
		version = info.Main.Version // of the same repository, with the commit
	}
	return cmp.Or(version, devel)
}
