package session

import "testing"

func TestServerOf_versionsAndComments(t *testing.T) {
	for _, c := range []struct {
		version, comment string
		want             string
		told             bool
	}{
		{"9.7.0", "MySQL Community Server - GPL", "mysql", true},
		{"8.0.36", "Source distribution", "mysql", true},
		{"8.0.36-28", "Percona Server (GPL), Release 28", "mysql", true},
		{"8.0.45-0ubuntu0.22.04.1", "(Ubuntu)", "mysql", true},
		{"8.0.31-google", "(Google)", "mysql", true},
		{"10.11.14-MariaDB-0+deb12u2", "Debian 12", "mariadb", true},
		{"11.8.3-mariadb", "mariadb.org binary distribution", "mariadb", true},
		{"8.4.6-Vitess", "Version: 23.0.2 (Git revision  branch '') built on  by @", "vitess", true},
		{"8.0.40", "Version: 23.0.2 (Git revision abc branch 'main') built on x", "vitess", true},
		{"8.0.40-vitess", "", "vitess", true},
		{"10.11.6-MariaDB", "Version: 23.0.2 (Git revision abc branch 'main')", "vitess", true},
		{"8.0.11-TiDB-v8.5.1", "TiDB Server Community Edition, MySQL 8.0 compatible", "tidb", true},
		{"5.7.25-TDDL-5.4.19-20240927", "", "other", true},
		{"5.5.8", "MemSQL source distribution (compatible; MySQL Enterprise & MySQL Commercial)", "other", true},
		{"5.7.25-tddl-5.4.19", "MySQL Community Server", "other", true},
		{"5.7.25-OceanBase_CE-v4.3.5.0", "OceanBase_CE 4.3.5.0 (MySQL compatible)", "other", true},
		{"8.0.33", "Dolt", "other", true},
		{"8.0.32", "", "other", false},
		{"", "", "other", false},
	} {
		if have, told := serverOf(c.version, c.comment); have != c.want || told != c.told {
			t.Errorf("%q, %q\nhave: %s %v\nwant: %s %v", c.version, c.comment, have, told, c.want, c.told)
		}
	}
}
