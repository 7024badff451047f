package segment

import (
	"cmp"
	"net"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/keygen/internal/mysqldb"
	"github.com/shardkey/shardkey/spi"
)

// parseJDBC parses the address of a database in the form of MySQL's and MariaDB's JDBC drivers,
// jdbc:mysql://host:port/database?option=value&…:
// https://dev.mysql.com/doc/connector-j/en/connector-j-reference-jdbc-url-format.html
//
// It uses the options for TLS (useSSL, requireSSL, verifyServerCertificate, sslMode), user and
// password. It ignores other options, such as serverTimezone. Unless the options specify otherwise,
// it uses TLS if the server supports it.
//
// The error is a [*spi.PropError] without the address, which may contain a password.
func parseJDBC(address string) (*mysql.Config, error) {
	scheme, rest, _ := strings.Cut(address, "://")
	u, err := url.Parse("mysql://" + rest)
	switch {
	case !strings.EqualFold(scheme, "jdbc:mysql") && !strings.EqualFold(scheme, "jdbc:mariadb"):
		return nil, badJDBC("one address of the form jdbc:mysql://host:3306/database")
	case err != nil, u.Host == "":
		return nil, badJDBC("jdbc:mysql://host:3306/database, with special characters percent-encoded")
	case strings.ContainsAny(u.Host, ",()"):
		return nil, badJDBC("one host; several servers would hand out the same numbers")
	case strings.Contains(u.Path, "@"), u.Fragment != "":
		return nil, badJDBC(wantEncoded)
	}
	option, err := jdbcOptions(u.RawQuery)
	if err != nil {
		return nil, err
	}
	tls, err := tlsMode(option)
	if err != nil {
		return nil, err
	}
	password, _ := u.User.Password()
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr = "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "3306"))
	cfg.DBName = strings.TrimPrefix(u.Path, "/")
	cfg.User = cmp.Or(option["user"], u.User.Username())
	cfg.Passwd = cmp.Or(option["password"], password)
	cfg.TLSConfig = tls
	mysqldb.OwnSession(cfg)
	return cfg, nil
}

const wantEncoded = "percent-encoding where the password has /, ? or #"

// jdbcOptions returns the options by name in lower case. A repeated option is an error, because
// drivers don't agree on which value counts.
func jdbcOptions(query string) (map[string]string, error) {
	parsed, err := url.ParseQuery(query)
	if err != nil {
		return nil, badJDBC("options of the form name=value, joined by &")
	}
	option := map[string]string{}
	for name, values := range parsed {
		lower := strings.ToLower(name)
		_, twice := option[lower]
		secret := lower == "user" || lower == "password"
		switch {
		case strings.Contains(name, "@"), !secret && strings.Contains(values[0], "@"):
			// It is the end of a password that contains '?'.
			return nil, badJDBC(wantEncoded)
		case twice || len(values) > 1:
			return nil, badJDBC("each option once, in upper or lower case")
		}
		option[lower] = values[0]
	}
	return option, nil
}

// tlsModes maps the values of sslMode, of both drivers, to go-sql-driver's parameter tls. Unlike in
// JDBC, VERIFY_CA also verifies the host name.
var tlsModes = map[string]string{
	"DISABLED": "false", "DISABLE": "false",
	"PREFERRED": "preferred",
	"REQUIRED":  "skip-verify", "TRUST": "skip-verify",
	"VERIFY_CA": "true", "VERIFY_IDENTITY": "true", "VERIFY_FULL": "true",
}

// tlsMode maps Connector/J's options
// (https://dev.mysql.com/doc/connector-j/en/connector-j-connp-props-security.html) to
// go-sql-driver's parameter tls. sslMode takes precedence over the older options.
func tlsMode(option map[string]string) (string, error) {
	yes := map[string]bool{}
	for _, name := range []string{"useSSL", "requireSSL", "verifyServerCertificate"} {
		switch strings.ToLower(option[strings.ToLower(name)]) {
		case "", "false", "no":
		case "true", "yes":
			yes[name] = true
		default:
			return "", badJDBC(name + " true, false, yes or no")
		}
	}
	if mode := option["sslmode"]; mode != "" {
		if tls, ok := tlsModes[strings.ToUpper(strings.ReplaceAll(mode, "-", "_"))]; ok {
			return tls, nil
		}
		return "", badJDBC("sslMode DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY")
	}
	switch {
	case option["usessl"] != "" && !yes["useSSL"]:
		return "false", nil
	case yes["verifyServerCertificate"]:
		return "true", nil
	case yes["useSSL"], yes["requireSSL"]:
		return "skip-verify", nil
	}
	return "preferred", nil
}

func badJDBC(want string) error {
	return &spi.PropError{Name: "leaf.jdbc.url", Want: want}
}
