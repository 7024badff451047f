package main

import (
	"fmt"
	"os"
	"strings"
)

// dsnHelp describes the flag -dsn, which readDSN reads.
const dsnHelp = "the application's data source `name`, for generators and assigners that\nwork in its own database; @file reads it from a file (@- is standard input),\nand without -dsn it is what the environment variable SHARDKEY_DSN says: other\nusers of the machine see a command's arguments, and a password in them"

// readDSN finds the data source name where a password is not seen by others.
func (p *program) readDSN(given string) (dsn string, err error) {
	file, isFile := strings.CutPrefix(given, "@")
	var text []byte
	switch {
	case given == "":
		return os.Getenv("SHARDKEY_DSN"), nil
	case !isFile:
		return given, nil
	case file == "-":
		file = stdinName
		text, err = p.readText()
	default:
		text, err = os.ReadFile(file)
	}
	dsn = strings.TrimSpace(string(text))
	if err == nil && dsn == "" {
		err = fmt.Errorf("%s holds no data source name", file)
	}
	return dsn, err
}
