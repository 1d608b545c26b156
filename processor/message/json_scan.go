package message

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// The lexical layer of JSON (RFC 8259). Its functions take the document and a position and return the position behind what
// they read; with an error, the position of the fault. None of them reads beyond the document.

// maxJSONDepth bounds the nesting of a document, and so the stack that it can take.
const maxJSONDepth = 200

var (
	errJSONEnd       = errors.New("the document ends early")
	errJSONSyntax    = errors.New("unexpected character")
	errJSONControl   = errors.New("a control character in a string")
	errJSONEscape    = errors.New("malformed escape in a string")
	errJSONSurrogate = errors.New("half of a surrogate pair in a string")
	errJSONUTF8      = errors.New("a string is not valid UTF-8")
	errJSONDepth     = errors.New("the document is nested too deeply")
	errJSONTrailing  = errors.New("the document is followed by something else")
)

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

const (
	lows  = 0x0101010101010101
	highs = 0x8080808080808080
)

// nextStop is the position of the next byte at or after i that a JSON string may not hold as it is (a quote, a backslash, a
// control character), or len(b). high has the bits of highs set where it passed a byte that is not ASCII.
//
// Eight bytes are looked at together: (x - lows*c) &^ x & highs has its lowest set bit at the first byte below c (Mycroft's
// test; only bits above the first hit can be wrong).
func nextStop(b []byte, i int) (stop int, high uint64) {
	for i+8 <= len(b) {
		x := binary.LittleEndian.Uint64(b[i:])
		quote, slash := x^(lows*'"'), x^(lows*'\\')
		hit := ((x-lows*' ')&^x | (quote-lows)&^quote | (slash-lows)&^slash) & highs
		if hit != 0 {
			n := bits.TrailingZeros64(hit) / 8
			return i + n, high | x&(1<<(8*n)-1)
		}
		high |= x
		i += 8
	}
	for i < len(b) {
		c := b[i]
		if c < ' ' || c == '"' || c == '\\' {
			return i, high
		}
		high |= uint64(c)
		i++
	}
	return i, high
}

// scanString checks the string whose opening quote stands before i and returns the position of its closing quote.
func scanString(b []byte, i int) (end int, escaped bool, err error) {
	start, high := i, uint64(0)
	for {
		stop, h := nextStop(b, i)
		high |= h
		if stop == len(b) {
			return stop, escaped, errJSONEnd
		}
		switch b[stop] {
		case '"':
			if high&highs != 0 && !utf8.Valid(b[start:stop]) {
				return start, escaped, errJSONUTF8
			}
			return stop, escaped, nil
		case '\\':
			escaped = true
			if i, err = skipEscape(b, stop); err != nil {
				return i, escaped, err
			}
		default:
			return stop, escaped, errJSONControl
		}
	}
}

// skipEscape checks the escape at i, for a surrogate both halves.
func skipEscape(b []byte, i int) (int, error) {
	if i+1 >= len(b) {
		return len(b), errJSONEnd
	}
	if b[i+1] != 'u' {
		if simpleEscape(b[i+1]) == 0 {
			return i, errJSONEscape
		}
		return i + 2, nil
	}
	r := hex4(b, i+2)
	switch {
	case r < 0:
		return i, errJSONEscape
	case !utf16.IsSurrogate(r):
		return i + 6, nil
	case i+7 >= len(b) || b[i+6] != '\\' || b[i+7] != 'u' || utf16.DecodeRune(r, hex4(b, i+8)) == utf8.RuneError:
		return i, errJSONSurrogate
	}
	return i + 12, nil
}

// simpleEscape is the character that backslash and c stand for, 0 for none.
func simpleEscape(c byte) byte {
	switch c {
	case '"', '\\', '/':
		return c
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return 0
}

// hex4 is the number that four hexadecimal digits at i stand for, -1 if they do not stand there.
func hex4(b []byte, i int) rune {
	if i+4 > len(b) {
		return -1
	}
	r := rune(0)
	for _, c := range b[i : i+4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// unescape appends the characters of a string that scanString found right.
func unescape(dst, s []byte) []byte {
	for i := 0; i < len(s); {
		c := s[i]
		if c != '\\' {
			dst = append(dst, c)
			i++
			continue
		}
		if s[i+1] != 'u' {
			dst = append(dst, simpleEscape(s[i+1]))
			i += 2
			continue
		}
		r := hex4(s, i+2)
		i += 6
		if utf16.IsSurrogate(r) {
			r = utf16.DecodeRune(r, hex4(s, i+2))
			i += 6
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

// jsonSkipper checks values of any kind. spaced tells that it passed white space.
type jsonSkipper struct {
	b      []byte
	spaced bool
}

func (s *jsonSkipper) space(i int) int {
	next := skipSpace(s.b, i)
	s.spaced = s.spaced || next != i
	return next
}

// value passes the value at i, which stands in depth other values.
func (s *jsonSkipper) value(i, depth int) (int, error) {
	if i >= len(s.b) {
		return len(s.b), errJSONEnd
	}
	switch s.b[i] {
	case '"':
		end, _, err := scanString(s.b, i+1)
		if err != nil {
			return end, err
		}
		return end + 1, nil
	case '{', '[':
		if depth >= maxJSONDepth {
			return i, errJSONDepth
		}
		return s.members(i, depth+1)
	case 't':
		return scanWord(s.b, i, "true")
	case 'f':
		return scanWord(s.b, i, "false")
	case 'n':
		return scanWord(s.b, i, "null")
	}
	_, end, err := scanDecimal(s.b, i)
	return end, err
}

// members passes the object or array that opens at i; its values stand in depth others. Repeated names are not its concern.
func (s *jsonSkipper) members(i, depth int) (int, error) {
	object := s.b[i] == '{'
	closing := s.b[i] + 2 // true of both brackets in ASCII
	i = s.space(i + 1)
	if i < len(s.b) && s.b[i] == closing {
		return i + 1, nil
	}
	for {
		var err error
		if object {
			if i, err = s.name(i); err != nil {
				return i, err
			}
		}
		if i, err = s.value(i, depth); err != nil {
			return i, err
		}
		i = s.space(i)
		switch {
		case i == len(s.b):
			return i, errJSONEnd
		case s.b[i] == closing:
			return i + 1, nil
		case s.b[i] != ',':
			return i, errJSONSyntax
		}
		i = s.space(i + 1)
	}
}

// name passes a member's name, colon and the space around it.
func (s *jsonSkipper) name(i int) (int, error) {
	i, err := scanByte(s.b, i, '"')
	if err != nil {
		return i, err
	}
	end, _, err := scanString(s.b, i)
	if err != nil {
		return end, err
	}
	if i, err = scanByte(s.b, s.space(end+1), ':'); err != nil {
		return i, err
	}
	return s.space(i), nil
}

func scanByte(b []byte, i int, c byte) (int, error) {
	switch {
	case i >= len(b):
		return len(b), errJSONEnd
	case b[i] != c:
		return i, errJSONSyntax
	}
	return i + 1, nil
}

func scanWord(b []byte, i int, word string) (int, error) {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return i, errJSONSyntax
	}
	return i + len(word), nil
}

// appendCompact appends a document that jsonSkipper found right, without the white space around its tokens.
func appendCompact(dst, text []byte) []byte {
	for i := 0; i < len(text); {
		switch text[i] {
		case ' ', '\n', '\t', '\r':
			i++
		case '"':
			end, _, _ := scanString(text, i+1)
			dst = append(dst, text[i:end+1]...)
			i = end + 1
		default:
			dst = append(dst, text[i])
			i++
		}
	}
	return dst
}

// bytesOf is s without a copy, for reading only.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
