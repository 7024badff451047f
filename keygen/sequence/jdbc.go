package sequence

import (
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/keygen/internal/mysqldb"
	"github.com/shardkey/shardkey/spi"
)

// parseJDBC parses the address of a database in the form of MySQL's and MariaDB's JDBC drivers,
// jdbc:mysql://host:port/database?option=value&…:
// https://dev.mysql.com/doc/connector-j/en/connector-j-reference-jdbc-url-format.html
//
// It uses the options for TLS (useSSL, requireSSL, verifyServerCertificate, sslMode),
// connectTimeout and socketTimeout (both in milliseconds), user and password. It ignores other
// options such as serverTimezone and characterEncoding, because they don't affect what this package
// reads. Unless the options specify otherwise, it uses TLS if the server supports it.
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
	port := u.Port()
	if port == "" {
		port = "3306"
	}
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr = "tcp", net.JoinHostPort(u.Hostname(), port)
	cfg.DBName = strings.TrimPrefix(u.Path, "/")
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	for name, field := range map[string]*string{"user": &cfg.User, "password": &cfg.Passwd} {
		if v := option[name]; v != "" {
			*field = v
		}
	}
	for name, field := range map[string]*time.Duration{"connectTimeout": &cfg.Timeout, "socketTimeout": &cfg.ReadTimeout} {
		if v := option[strings.ToLower(name)]; v != "" {
			ms, err := strconv.ParseUint(v, 10, 31)
			if err != nil {
				return nil, badJDBC(name + " in milliseconds")
			}
			*field = time.Duration(ms) * time.Millisecond
		}
	}
	cfg.WriteTimeout = cfg.ReadTimeout
	if cfg.TLSConfig, err = tlsMode(option); err != nil {
		return nil, err
	}
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
	older := map[string]string{}
	for _, name := range []string{"useSSL", "requireSSL", "verifyServerCertificate"} {
		switch v := strings.ToLower(option[strings.ToLower(name)]); v {
		case "":
		case "true", "yes":
			older[name] = "yes"
		case "false", "no":
			older[name] = "no"
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
	case older["useSSL"] == "no":
		return "false", nil
	case older["verifyServerCertificate"] == "yes":
		return "true", nil
	case older["useSSL"] == "yes", older["requireSSL"] == "yes":
		return "skip-verify", nil
	}
	return "preferred", nil
}

func badJDBC(want string) error {
	return &spi.PropError{Name: "leaf.jdbc.url", Want: want}
}
