package message

import (
	"strings"
	"testing"
)

func TestSchemaFindsColumnsByName(t *testing.T) {
	t.Parallel()
	s := MustSchema(Column{Name: "a", Kind: String}, Column{Name: "b", Kind: Int64})
	for name, want := range map[string]int{"a": 0, "b": 1, "c": -1, "": -1} {
		if got := s.Index(name); got != want {
			t.Errorf("Index(%q) = %d, want %d", name, got, want)
		}
	}
}

func TestSchemaRefusesColumnsThatCannotBeTold(t *testing.T) {
	t.Parallel()
	for want, columns := range map[string][]Column{
		"both named a":      {{Name: "a", Kind: String}, {Name: "b", Kind: String}, {Name: "a", Kind: Int64}},
		"no name":           {{Kind: String}},
		"not valid UTF-8":   {{Name: "a\xff", Kind: String}},
		"not a column type": {{Name: "a", Kind: JSON + 1}},
		"null is not":       {{Name: "a"}},
	} {
		if _, err := NewSchema(columns); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestSchemaCopiesItsColumns(t *testing.T) {
	t.Parallel()
	columns := []Column{{Name: "a", Kind: String}}
	s, err := NewSchema(columns)
	if err != nil {
		t.Fatal(err)
	}
	columns[0].Name = "b"
	if s.Columns[0].Name != "a" {
		t.Error("the schema shares its columns with the caller")
	}
}

func TestFingerprintTellsEveryDifference(t *testing.T) {
	t.Parallel()
	schemas := []*Schema{
		MustSchema(),
		MustSchema(Column{Name: "a", Kind: String}),
		MustSchema(Column{Name: "b", Kind: String}),
		MustSchema(Column{Name: "a", Kind: JSON}),
		MustSchema(Column{Name: "a", Kind: String, Required: true}),
		MustSchema(Column{Name: "a", Kind: String}, Column{Name: "b", Kind: String}),
		MustSchema(Column{Name: "b", Kind: String}, Column{Name: "a", Kind: String}),
	}
	for i, a := range schemas {
		for j, b := range schemas {
			if same := a.Fingerprint() == b.Fingerprint(); same != (i == j) || a.Equal(b) != (i == j) {
				t.Errorf("schemas %d and %d: same fingerprint %v, equal %v", i, j, same, a.Equal(b))
			}
		}
	}
	if !MustSchema(Column{Name: "a", Kind: String}).Equal(schemas[1]) || schemas[1].Equal(nil) {
		t.Error("Equal looks at identity")
	}
}

func TestFingerprintIsFrozen(t *testing.T) {
	t.Parallel()
	if got := sampleSchema.Fingerprint(); got != 0xa56f825f3ab4360 {
		t.Errorf("fingerprint %#x: stored records would no longer be understood", got)
	}
}

func TestKindsHaveTheWordsOfTheSpec(t *testing.T) {
	t.Parallel()
	for k := String; k <= JSON; k++ {
		if got, ok := ParseKind(k.String()); !ok || got != k {
			t.Errorf("ParseKind(%q) = %v, %v", k.String(), got, ok)
		}
	}
	for _, word := range []string{"null", "", "String", "kind(9)"} {
		if k, ok := ParseKind(word); ok {
			t.Errorf("ParseKind(%q) = %v", word, k)
		}
	}
	if got := Kind(9).String(); got != "kind(9)" {
		t.Errorf("an unknown kind is called %s", got)
	}
}
