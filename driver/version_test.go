package driver

import (
	"runtime/debug"
	"testing"
)

func TestVersion_fromBuildInfo(t *testing.T) {
	vcs := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}}
	dep := func(version string, replace *debug.Module) []*debug.Module {
		return []*debug.Module{{Path: "example.com/other", Version: "v9.0.0"}, {Path: modulePath, Version: version, Replace: replace}}
	}
	for name, c := range map[string]struct {
		info debug.BuildInfo
		want string
	}{
		"a program requires it":        {debug.BuildInfo{Main: debug.Module{Path: "example.com/user", Version: "v2.0.0"}, Deps: dep("v0.1.0", nil)}, "v0.1.0"},
		"it is the main module":        {debug.BuildInfo{Main: debug.Module{Path: modulePath, Version: "v0.1.0"}, Settings: vcs}, "v0.1.0"},
		"the installed tool":           {debug.BuildInfo{Main: debug.Module{Path: modulePath + "/cmd/shardkey", Version: "v0.1.1"}, Deps: dep("v0.1.0", nil)}, "v0.1.0"},
		"the tool in a clone":          {debug.BuildInfo{Main: debug.Module{Path: modulePath + "/cmd/shardkey", Version: "v0.1.2-0.20261123-0123456789ab+dirty"}, Deps: dep("(devel)", nil)}, "v0.1.2-0.20261123-0123456789ab+dirty"},
		"replaced by a directory":      {debug.BuildInfo{Main: debug.Module{Path: "example.com/user"}, Deps: dep("v0.1.0", &debug.Module{Path: "../shardkey"}), Settings: vcs}, "(devel)"},
		"replaced by another version":  {debug.BuildInfo{Main: debug.Module{Path: "example.com/user"}, Deps: dep("v0.1.0", &debug.Module{Path: "example.com/fork", Version: "v0.1.2"})}, "v0.1.2"},
		"the main module's own commit": {debug.BuildInfo{Main: debug.Module{Path: "github.com/shardkey/shardkeys"}, Deps: dep("", nil), Settings: vcs}, "(devel)"},
		"nothing is recorded":          {debug.BuildInfo{}, "(devel)"},
	} {
		t.Run(name, func(t *testing.T) {
			equal(t, versionOf(&c.info), c.want)
		})
	}
	if Version() == "" {
		t.Error("Version returns nothing")
	}
}
