package message

import (
	"bytes"
	"encoding/json"
	"io"
	"math/big"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"
	"unicode/utf8"
)

// The reference reads JSON by encoding/json and adds the rules that it does not know. It is slow and short.

var escapes = regexp.MustCompile(`\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)`)

// referenceDocument says whether text is one document by our rules, at most depth deep, and gives it without spaces.
func referenceDocument(text []byte, depth int) ([]byte, bool) {
	if !json.Valid(text) || !utf8.Valid(text) {
		return nil, false
	}
	for _, escape := range escapes.FindAll(text, -1) {
		if len(escape) == 6 && escape[1] == 'u' {
			return nil, false // one half of a pair
		}
	}
	tokens := json.NewDecoder(bytes.NewReader(text))
	tokens.UseNumber()
	for open := 0; ; {
		token, err := tokens.Token()
		if err == io.EOF {
			break
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			open++
		case json.Delim('}'), json.Delim(']'):
			open--
		}
		if err != nil || open > depth {
			return nil, false
		}
	}
	var compact bytes.Buffer
	if json.Compact(&compact, text) != nil {
		return nil, false
	}
	return compact.Bytes(), true
}

// referenceRow reads a row of the schema.
func referenceRow(s *Schema, text []byte) (Row, bool) {
	compact, ok := referenceDocument(text, maxJSONDepth)
	if !ok || compact[0] != '{' {
		return nil, false
	}
	members := json.NewDecoder(bytes.NewReader(compact))
	members.Token()
	row, seen := make(Row, len(s.Columns)), make([]bool, len(s.Columns))
	for members.More() {
		name, _ := members.Token()
		var value json.RawMessage
		if members.Decode(&value) != nil {
			return nil, false
		}
		column := s.Index(name.(string))
		if column < 0 {
			continue
		}
		if seen[column] {
			return nil, false
		}
		seen[column] = true
		if row[column], ok = referenceValue(s.Columns[column].Kind, value); !ok {
			return nil, false
		}
	}
	for i, c := range s.Columns {
		if c.Required && row[i].IsNull() {
			return nil, false
		}
	}
	return row, true
}

var number = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

func referenceValue(k Kind, value json.RawMessage) (Value, bool) {
	if string(value) == "null" {
		return NullValue(), true
	}
	var text string
	isText := value[0] == '"' && json.Unmarshal(value, &text) == nil
	isNumber := number.Match(value)
	switch k {
	case String:
		return StringValue(text), isText
	case Boolean:
		return BooleanValue(string(value) == "true"), string(value) == "true" || string(value) == "false"
	case Double:
		f, err := strconv.ParseFloat(string(value), 64)
		return DoubleValue(f), isNumber && err == nil
	case JSON:
		return JSONValue(string(value)), true
	case Timestamp:
		if isText {
			micros, ok := libraryTime(text)
			return TimestampValue(micros), ok
		}
	}
	digits := string(value)
	if isText {
		digits = text
	}
	return referenceInteger(k, digits)
}

func referenceInteger(k Kind, digits string) (Value, bool) {
	parts := number.FindStringSubmatch(digits)
	if parts == nil {
		return Value{}, false
	}
	if exponent, err := strconv.Atoi("0" + regexp.MustCompile(`[eE+-]`).ReplaceAllString(parts[3], "")); err != nil || exponent > 1000 {
		return referenceInteger(k, map[bool]string{true: "0", false: "0.5"}[regexp.MustCompile(`^[-0.]*$`).MatchString(digits[:len(digits)-len(parts[3])])])
	}
	exact, ok := new(big.Rat).SetString(digits)
	if !ok || !exact.IsInt() {
		return Value{}, false
	}
	n := exact.Num()
	switch k {
	case Uint64:
		return Uint64Value(n.Uint64()), n.IsUint64()
	case Timestamp:
		n.Mul(n, big.NewInt(1000))
		micros := n.Int64()
		return TimestampValue(micros), n.IsInt64() && micros >= minTime && micros <= maxTime
	}
	return Int64Value(n.Int64()), n.IsInt64()
}

// used is a row that had other values before.
func used() Row {
	row := make(Row, len(sampleSchema.Columns))
	for i := range row {
		row[i] = Value{Kind: JSON + 1, Num: 42, Str: "old"}
	}
	return row
}

func compareRow(t *testing.T, d *JSONDecoder, text []byte) bool {
	t.Helper()
	want, ok := referenceRow(sampleSchema, text)
	got, err := d.Decode(used(), text)
	if (err == nil) != ok || ok && !sameRow(got, want) {
		t.Fatalf("%q\nreads as %v, %v;\nthe reference reads %v, %v", text, got, err, want, ok)
	}
	return ok
}

var documentSamples = []string{
	`{"s":"a","i":1,"u":2,"d":1.5,"b":true,"t":"2023-11-14T22:13:20.5Z","j":{"a":[1, "x"]},"s2":null,"i2":-7}`,
	`{"s":"\u00e4\ud834\udd1e\n","i":1.50e1,"u":"18446744073709551615","d":-0,"t":1700000000000,"j":null,"x":[{}],"y":{"s":1}}`,
	" { \"i\" : 1e3 ,\n\"s\" : \"\" , \"b\":false, \"d\": 1e-5, \"j\" : [ true , false , null ] } ",
	`{"\u0073":"a","i":9223372036854775807,"u":0.0,"i2":"-9223372036854775808","d":123456789012345678}`, `{"s":"a","s":"b"}`, `{}`, `[]`, `{"s":null}`,
	`{"s":"a","i":1.5,"x":"\ud834"}`, `{"s":"a","j":"\u0000 \\u"}`, `{"s":"a","t":-62167219200000}`, "{\"s\":\"\xff\"}",
}

// mutate changes a document in a few places, often so that it stays one.
func mutate(r *rand.Rand, text []byte) []byte {
	snippets := []string{`"`, `,`, `:`, `{`, `}`, `[`, `]`, ` `, `0`, `9`, `-`, `.`, `e`, `1e2`, `null`, `true`, `\`, `\u`, `\ud834\udd1e`, `\ud834`, "\xff", "ä", `"s":"x",`, `"s"`, "\x00"}
	text = bytes.Clone(text)
	for range r.IntN(3) {
		at := r.IntN(len(text) + 1)
		end := min(len(text), at+r.IntN(3))
		text = append(append(bytes.Clone(text[:at]), snippets[r.IntN(len(snippets))]...), text[end:]...)
	}
	return text
}

func TestJSONRowsAreReadAsTheReferenceReadsThem(t *testing.T) {
	t.Parallel()
	r := newRandom(t)
	d, e := NewJSONDecoder(sampleSchema), NewJSONEncoder(sampleSchema)
	for _, s := range documentSamples {
		compareRow(t, d, []byte(s))
	}
	var right, wrong int
	for range 20000 {
		text := []byte(documentSamples[r.IntN(len(documentSamples))])
		if r.IntN(2) == 0 {
			text, _ = e.Append(nil, randomRow(r))
		}
		if compareRow(t, d, mutate(r, text)) {
			right++
		} else {
			wrong++
		}
	}
	if right < 1000 || wrong < 1000 {
		t.Errorf("%d right and %d wrong documents are too few to tell", right, wrong)
	}
}

func FuzzDecodeJSON(f *testing.F) {
	for _, s := range documentSamples {
		f.Add([]byte(s))
	}
	e := NewJSONEncoder(sampleSchema)
	f.Fuzz(func(t *testing.T, text []byte) {
		d := NewJSONDecoder(sampleSchema)
		if !compareRow(t, d, text) {
			return
		}
		row, err := d.Decode(nil, text) // by the order that the first reading left
		if err != nil {
			t.Fatalf("%q does not read twice: %v", text, err)
		}
		again, err := e.Append(nil, row)
		if err != nil {
			t.Fatalf("%q cannot be written again: %v", text, err)
		}
		if back, err := d.Decode(nil, again); err != nil || !sameRow(back, row) {
			t.Fatalf("%q is written again as %q, which reads as %v, %v", text, again, back, err)
		}
	})
}

func FuzzJSONDocument(f *testing.F) {
	for _, s := range documentSamples {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		want, ok := referenceDocument(text, maxJSONDepth-1)
		got, err := appendDocument(nil, text)
		if (err == nil) != ok || ok && !bytes.Equal(got, want) {
			t.Fatalf("%q is written %q, %v; the reference writes %q, %v", text, got, err, want, ok)
		}
	})
}
