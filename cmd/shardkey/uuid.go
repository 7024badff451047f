package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

type uuid [16]byte

// parseUUID parses a UUID with or without dashes, as x'…' or 0x…, in braces, or as a URN.
func parseUUID(word string) (u uuid, ok bool) {
	text := strings.ToLower(strings.TrimSpace(word))
	text = strings.TrimPrefix(text, "urn:uuid:")
	for _, around := range [][2]string{{"{", "}"}, {"x'", "'"}, {"0x", ""}} {
		if inner, found := strings.CutPrefix(text, around[0]); found && strings.HasSuffix(inner, around[1]) {
			text = strings.TrimSuffix(inner, around[1])
			break
		}
	}
	if len(text) == 36 {
		for _, i := range []int{8, 13, 18, 23} {
			if text[i] != '-' {
				return u, false
			}
		}
		text = strings.ReplaceAll(text, "-", "")
	}
	if len(text) != 2*len(u) {
		return u, false
	}
	_, err := hex.Decode(u[:], []byte(text))
	return u, err == nil
}

// uuidKinds describes the UUID versions without a time. See RFC 9562.
var uuidKinds = map[byte]string{
	2: "DCE security", 3: "MD5 of a name", 4: "random", 5: "SHA-1 of a name", 8: "custom",
}

// gregorian is the epoch of UUID versions 1 and 6, which count 100 ns ticks.
var gregorian = time.Date(1582, 10, 15, 0, 0, 0, 0, time.UTC)

func (u uuid) decode(word string, zone *time.Location) decoded {
	v := decoded{Key: word}
	version, variant := u[6]>>4, u[8]>>6
	high, low := binary.BigEndian.Uint32(u[0:]), binary.BigEndian.Uint16(u[4:])
	rest := uint64(binary.BigEndian.Uint16(u[6:]) & 0xfff)
	clock := int64(binary.BigEndian.Uint16(u[8:]) & 0x3fff)
	switch {
	case u == uuid{}:
		v.Layout = "nil UUID"
	case u == uuid(bytes.Repeat([]byte{0xff}, len(u))):
		v.Layout = "max UUID"
	case variant != 2:
		v.Layout = "UUID of another variant"
	case version == 1:
		v.Time, v.Sequence = formatTime(gregorianTime(rest<<48|uint64(low)<<32|uint64(high)), zone), &clock
	case version == 6:
		v.Time, v.Sequence = formatTime(gregorianTime(uint64(high)<<28|uint64(low)<<12|rest), zone), &clock
	case version == 7:
		v.Time = formatTime(time.UnixMilli(int64(high)<<16|int64(low)), zone)
	case uuidKinds[version] != "":
		v.Layout = fmt.Sprintf("UUIDv%d (%s)", version, uuidKinds[version])
	}
	if v.Layout == "" {
		v.Layout = fmt.Sprintf("UUIDv%d", version)
	}
	return v
}

func gregorianTime(ticks uint64) time.Time {
	const second = 10_000_000
	return time.Unix(gregorian.Unix()+int64(ticks/second), int64(ticks%second)*100)
}
