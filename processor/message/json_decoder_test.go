package message

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// oneValue decodes a value in a column of kind k.
func oneValue(k Kind, text string) (Value, error) {
	d := NewJSONDecoder(MustSchema(Column{Name: "c", Kind: k}))
	row, err := d.Decode(nil, []byte(`{"c":`+text+`}`))
	if err != nil {
		return Value{}, err
	}
	return row[0], nil
}

func TestJSONValuesAreReadByTheirColumnsKind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want Value
	}{
		{`"a"`, StringValue("a")},
		{`""`, StringValue("")},
		{`"\"\\\/\b\f\n\r\t\u0041\u00e4\ud834\udd1E\u0000"`, StringValue("\"\\/\b\f\n\r\tAä𝄞\x00")},
		{`"grüße, 世界 𝄞 and more than eight bytes"`, StringValue("grüße, 世界 𝄞 and more than eight bytes")},
		{`9223372036854775807`, Int64Value(math.MaxInt64)},
		{`-9223372036854775808`, Int64Value(math.MinInt64)},
		{`-0`, Int64Value(0)},
		{`1.0`, Int64Value(1)},
		{`1e3`, Int64Value(1000)},
		{`-12.50E+1`, Int64Value(-125)},
		{`12000e-3`, Int64Value(12)},
		{`0.000e999999999999999999999`, Int64Value(0)},
		{`0.0000000000000000000000000000000000000001e40`, Int64Value(1)},
		{`0.` + strings.Repeat("0", 1500) + `1e1501`, Int64Value(1)},
		{`9007199254740993.0`, Int64Value(9007199254740993)},
		{`"123"`, Int64Value(123)},
		{`"-1e2"`, Int64Value(-100)},
		{`"\u0031"`, Int64Value(1)},
		{`18446744073709551615`, Uint64Value(math.MaxUint64)},
		{`-0.0`, Uint64Value(0)},
		{`1.8446744073709551615e19`, Uint64Value(math.MaxUint64)},
		{`0.1`, DoubleValue(0.1)},
		{`-0`, DoubleValue(math.Copysign(0, -1))},
		{`1.7976931348623157e308`, DoubleValue(math.MaxFloat64)},
		{`5e-324`, DoubleValue(5e-324)},
		{`1e-400`, DoubleValue(0)},
		{`123456789012345678901234567890`, DoubleValue(123456789012345678901234567890)},
		{`true`, BooleanValue(true)},
		{`false`, BooleanValue(false)},
		{`1700000000123`, TimestampValue(1_700_000_000_123_000)},
		{`-1`, TimestampValue(-1000)},
		{`1.5e3`, TimestampValue(1_500_000)},
		{`"2023-11-14T22:13:20.123456Z"`, TimestampValue(1_700_000_000_123_456)},
		{`"2023-11-14T22:13:20.1234569\u005a"`, TimestampValue(1_700_000_000_123_456)},
		{`{"a":[1,"x y",{}]}`, JSONValue(`{"a":[1,"x y",{}]}`)},
		{" { \"a\" : [ 1 ,\t\"x \\\" y\" , { } ] }\n", JSONValue(`{"a":[1,"x \" y",{}]}`)},
		{`"a"`, JSONValue(`"a"`)},
		{`-1.50`, JSONValue(`-1.50`)},
	} {
		if got, err := oneValue(c.want.Kind, c.text); err != nil || !Equal(got, c.want) {
			t.Errorf("%s reads as %+v, %v; want %+v", c.text, got, err, c.want)
		}
	}
	for k := String; k <= JSON; k++ {
		if got, err := oneValue(k, ` null `); err != nil || !got.IsNull() {
			t.Errorf("null of kind %s reads as %v, %v", k, got, err)
		}
	}
}

func TestJSONValuesThatDoNotFitTheirColumnAreErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind  Kind
		text  string
		cause error
	}{
		{String, `1`, errJSONType}, {String, `{"a":1}`, errJSONType}, {String, `true`, errJSONType},
		{Int64, `9223372036854775808`, errIntRange}, {Int64, `-9223372036854775809`, errIntRange}, {Int64, `1e19`, errIntRange},
		{Int64, `99999999999999999999999999`, errIntRange}, {Int64, `1e999999999999999999999`, errIntRange},
		{Int64, `"9223372036854775808"`, errIntRange}, {Int64, `"1e99"`, errIntRange},
		{Int64, `1.5`, errNotInteger}, {Int64, `1e-1`, errNotInteger}, {Int64, `"x"`, errNotInteger}, {Int64, `""`, errNotInteger},
		{Int64, `" 1"`, errNotInteger}, {Int64, `"1 "`, errNotInteger}, {Int64, `"NaN"`, errNotInteger}, {Int64, `true`, errJSONType},
		{Int64, `01`, errJSONSyntax}, {Int64, `-`, errJSONSyntax}, {Int64, `1.`, errJSONSyntax}, {Int64, `1e`, errJSONSyntax}, {Int64, `+1`, errJSONType},
		{Uint64, `-1`, errIntRange}, {Uint64, `18446744073709551616`, errIntRange}, {Uint64, `20000000000000000000`, errIntRange},
		{Double, `1e309`, errFloatRange}, {Double, `NaN`, errJSONType}, {Double, `-Infinity`, errJSONSyntax}, {Double, `"1"`, errJSONType},
		{Boolean, `1`, errJSONType}, {Boolean, `"true"`, errJSONType}, {Boolean, `tru`, errJSONSyntax},
		{Timestamp, `1700000000000000`, errTimeRange}, {Timestamp, `9223372036854775807`, errTimeRange}, {Timestamp, `1.5`, errNotInteger},
		{Timestamp, `"1700000000000"`, errTime}, {Timestamp, `"9999-12-31T23:59:59-01:00"`, errTimeRange}, {Timestamp, `[]`, errJSONType},
		{JSON, `{"a"}`, errJSONSyntax}, {JSON, `[1,]`, errJSONSyntax}, {JSON, `[1 2]`, errJSONSyntax}, {JSON, `nul`, errJSONSyntax},
		{JSON, `'a'`, errJSONSyntax}, {JSON, `{1:2}`, errJSONSyntax},
	} {
		got, err := oneValue(c.kind, c.text)
		if !errors.Is(err, c.cause) {
			t.Errorf("%s as %s reads as %+v, %v; want %v", c.text, c.kind, got, err, c.cause)
		}
	}
}

// Strings are checked alike wherever they stand: in a column, in a json column, in a member that is ignored, in a name.
func TestMalformedJSONStringsAreErrorsEverywhere(t *testing.T) {
	t.Parallel()
	for inside, cause := range map[string]error{
		"a\xff": errJSONUTF8, "long enough for words \xc3": errJSONUTF8, "\xed\xa0\x80": errJSONUTF8, "\xc0\xaf": errJSONUTF8, "\xe4\\n\xb8\x96": errJSONUTF8,
		"a\nb": errJSONControl, "\x00": errJSONControl, `\x`: errJSONEscape, `\u12`: errJSONEscape, `\u12G4`: errJSONEscape,
		`\ud834`: errJSONSurrogate, `\udd1e`: errJSONSurrogate, `\ud834A`: errJSONSurrogate, `\ud834\ud834`: errJSONSurrogate, `\ud834\n`: errJSONSurrogate,
	} {
		for _, document := range []string{`{"s":"%"}`, `{"j":"%"}`, `{"j":["%"]}`, `{"x":"%"}`, `{"%":1}`, `{"i":"%"}`, `{"t":"%"}`, `{"x":{"%":1}}`} {
			document = strings.Replace(document, "%", inside, 1)
			schema := MustSchema(Column{Name: "s", Kind: String}, Column{Name: "i", Kind: Int64}, Column{Name: "t", Kind: Timestamp}, Column{Name: "j", Kind: JSON})
			if row, err := NewJSONDecoder(schema).Decode(nil, []byte(document)); !errors.Is(err, cause) {
				t.Errorf("%q reads as %v, %v; want %v", document, row, err, cause)
			}
		}
	}
}

var personSchema = MustSchema(Column{Name: "name", Kind: String, Required: true}, Column{Name: "age", Kind: Int64}, Column{Name: "städte\"", Kind: JSON})

func TestJSONObjectsBecomeRows(t *testing.T) {
	t.Parallel()
	d := NewJSONDecoder(personSchema)
	null := NullValue()
	for _, c := range []struct {
		document string
		want     Row
	}{
		{`{"name":"a","age":1,"städte\"":[]}`, Row{StringValue("a"), Int64Value(1), JSONValue("[]")}},
		{`{"age":2,"name":"b"}`, Row{StringValue("b"), Int64Value(2), null}},
		{`{"name":"c"}`, Row{StringValue("c"), null, null}},
		{" {\t\"name\" : \"d\" ,\r\n\"age\": null } ", Row{StringValue("d"), null, null}},
		{`{"x":{"name":1},"n\u0061me":"e","y":[1,[2]],"x":2,"age":3}`, Row{StringValue("e"), Int64Value(3), null}},
		{`{"Name":"x","name":"f","nam":1,"namee":2}`, Row{StringValue("f"), null, null}},
		{`{"st\u00e4dte\u0022":{"a":null},"name":"\u0067"}`, Row{StringValue("g"), null, JSONValue(`{"a":null}`)}},
	} {
		for round := range 3 { // the second time the order of members is known
			row, err := d.Decode(make(Row, 0, 3), []byte(c.document))
			if err != nil || !sameRow(row, c.want) {
				t.Errorf("%s, round %d, reads as %v, %v", c.document, round, row, err)
			}
		}
	}
}

func TestFaultyJSONRowsAreErrors(t *testing.T) {
	t.Parallel()
	d := NewJSONDecoder(personSchema)
	for _, c := range []struct {
		document string
		cause    error
		column   string
		offset   int
	}{
		{``, errJSONObject, "", 0}, {` []`, errJSONObject, "", 1}, {`null`, errJSONObject, "", 0}, {"\ufeff{}", errJSONObject, "", 0},
		{`{`, errJSONEnd, "", 1}, {`{"name"`, errJSONEnd, "name", 7}, {`{"name":`, errJSONEnd, "name", 8}, {`{"name":"a`, errJSONEnd, "name", 10},
		{`{"name":"a"`, errJSONEnd, "", 11}, {`{"name":"a",`, errJSONEnd, "", 12}, {`{"name":"a",}`, errJSONSyntax, "", 12},
		{`{"name":"a"]`, errJSONSyntax, "name", 11}, {`{"age":12x}`, errJSONSyntax, "age", 9}, {`{,}`, errJSONSyntax, "", 1},
		{`{"name":"a"}}`, errJSONTrailing, "", 12}, {`{"name":"a"} {}`, errJSONTrailing, "", 13},
		{`{"name":"a","age":1,"age":1}`, errJSONRepeated, "age", 26}, {`{"name":"a","n\u0061me":"a"}`, errJSONRepeated, "name", 24},
		{`{"name":"a","age":null,"age":null}`, errJSONRepeated, "age", 29},
		{`{}`, errMissing, "name", 2}, {`{"age":1}`, errMissing, "name", 9}, {`{"name":null}`, errNullRequired, "name", 8},
		{`{"x":tru,"name":"a"}`, errJSONSyntax, "", 5}, {`{"name":"a","age":{}}`, errJSONType, "age", 18},
		{`{"x":` + strings.Repeat("[", maxJSONDepth) + strings.Repeat("]", maxJSONDepth) + `}`, errJSONDepth, "", 4 + maxJSONDepth},
		{`{"x":` + strings.Repeat(`[`, 1_000_000), errJSONDepth, "", 4 + maxJSONDepth},
	} {
		row, err := d.Decode(nil, []byte(c.document))
		var fault *JSONError
		if !errors.As(err, &fault) || !errors.Is(err, c.cause) || fault.Column != c.column || fault.Offset != c.offset {
			t.Errorf("%.40s reads as %v, %v; want %v in column %q at %d", c.document, row, err, c.cause, c.column, c.offset)
		}
	}
}

func TestFaultOfOneRecordLeavesNoTraceInTheNext(t *testing.T) {
	t.Parallel()
	d := NewJSONDecoder(personSchema)
	row, err := d.Decode(nil, []byte(`{"name":"a","age":1,"städte\"":[1],"age":2}`))
	if err == nil {
		t.Fatal("a repeated member was taken")
	}
	row, err = d.Decode(row, []byte(`{"name":"b"}`))
	if want := (Row{StringValue("b"), NullValue(), NullValue()}); err != nil || !sameRow(row, want) {
		t.Errorf("the next record reads as %v, %v", row, err)
	}
}

func TestJSONDepthIsBoundedAtItsLimit(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", maxJSONDepth-1) + strings.Repeat("]", maxJSONDepth-1)
	if got, err := oneValue(JSON, deep); err != nil || got.Str != deep {
		t.Errorf("nesting of %d: %v", maxJSONDepth, err)
	}
}

func TestEveryCutOfAJSONDocumentIsAnError(t *testing.T) {
	t.Parallel()
	d := NewJSONDecoder(sampleSchema)
	for _, document := range []string{
		`{"s":"\ud834\udd1e\n and more","i":-1.5e+1,"b":true,"j":[{"a":null},"x"],"t":"2023-11-14T22:13:20Z"}`,
		` { "s" : "a" , "x" : [ 1 , false ] } `,
	} {
		whole := []byte(strings.TrimRight(document, " "))
		if _, err := d.Decode(nil, whole); err != nil {
			t.Fatal(err)
		}
		for n := range whole {
			if row, err := d.Decode(nil, whole[:n:n]); err == nil { // without room behind it
				t.Errorf("%s reads as %v", whole[:n], row)
			}
		}
	}
}

func TestOrderOfMembersIsExpectedAgain(t *testing.T) {
	t.Parallel()
	d := NewJSONDecoder(personSchema)
	for document, want := range map[string][]int{`{"age":1,"x":0,"name":"a"}`: {1, -1, 0}, `{"x":0,"name":"a","age":1}`: {-1, 0, 1}} {
		if _, err := d.Decode(nil, []byte(document)); err != nil || !slices.Equal(d.order, want) {
			t.Errorf("after %s the order is %v, %v", document, d.order, err)
		}
	}
	var wide strings.Builder
	for n := range 10 * maxForeign {
		fmt.Fprintf(&wide, `"x%d":0,`, n)
	}
	if _, err := d.Decode(nil, []byte(`{`+wide.String()+`"name":"a"}`)); err != nil || len(d.order) > len(personSchema.Columns)+maxForeign {
		t.Errorf("%d members are remembered, %v", len(d.order), err)
	}
}

func TestJSONErrorsShowLittleOfTheDocument(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("secret", 1000)
	_, err := NewJSONDecoder(personSchema).Decode(nil, []byte(`{"x":"`+secret+"\x01"+secret+`"}`))
	var fault *JSONError
	if !errors.As(err, &fault) || len(fault.Near) > 32 || !strings.Contains(fault.Near, "\x01") {
		t.Fatalf("error %v", err)
	}
	if message := err.Error(); len(message) > 200 || !strings.Contains(message, "byte 6006") {
		t.Errorf("%d bytes: %s", len(message), message)
	}
}

func TestStringsOfARowOutliveTheNextRecord(t *testing.T) {
	t.Parallel()
	d := NewJSONDecoder(sampleSchema)
	first, err := d.Decode(nil, []byte(`{"s":"a\tb","j":[ 1, 2 ],"s2":"\u00e4"}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Decode(nil, []byte(`{"s":"X\nY","j":[ 8, 9 ],"s2":"\u00f6"}`)); err != nil {
		t.Fatal(err)
	}
	if first[0].Str != "a\tb" || first[6].Str != "[1,2]" || first[7].Str != "ä" {
		t.Errorf("the first row became %v", first)
	}
}

func TestJSONDecodingAllocatesOnlyForEscapes(t *testing.T) {
	d, row := NewJSONDecoder(benchSchema), make(Row, 0, 4)
	for document, want := range map[string]float64{
		string(benchDocument): 0,
		`{"ts": 1, "user": "ä", "x": [1.5, {"y": "z"}], "amount": "17", "pad": null}`: 0,
		`{"user":"a\tb\n","pad":"\u0041\u0042","amount":1}`:                           1,
	} {
		b := []byte(document)
		got := testing.AllocsPerRun(100, func() {
			var err error
			if row, err = d.Decode(row, b); err != nil {
				t.Fatal(err)
			}
		})
		if got != want {
			t.Errorf("%.60s: %v allocations, want %v", document, got, want)
		}
	}
}
