package functions

import (
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/kafka-processor/processor/processor/message"
)

// items goes through the elements of a for_each: those of a CEL list, or the parts of a string.
type items struct {
	elements  traits.Iterator // nil: split rest
	rest, sep string
	ended     bool
}

// startSplit begins the parts of text as strings.Split gives them.
func startSplit(f *Frame, text, separator evaluator) (items, error) {
	s, sep, err := both(f, text, separator)
	if err != nil {
		return items{}, err
	}
	return items{rest: s.Str, sep: sep.Str, ended: s.Str == "" && sep.Str == ""}, nil
}

// next sets the frame's item; it is false at the end.
func (it *items) next(f *Frame) (bool, error) {
	if it.elements != nil {
		if it.elements.HasNext() != types.True {
			return false, nil
		}
		return true, f.setItem(it.elements.Next())
	}
	if it.ended {
		return false, nil
	}
	part := it.rest
	if it.sep == "" { // one code point a part
		_, size := utf8.DecodeRuneInString(it.rest)
		part, it.rest = it.rest[:size], it.rest[size:]
		it.ended = it.rest == ""
	} else if i := strings.Index(it.rest, it.sep); i >= 0 {
		part, it.rest = it.rest[:i], it.rest[i+len(it.sep):]
	} else {
		it.ended = true
	}
	f.item, f.itemCEL = message.StringValue(part), nil
	return true, nil
}

// setItem makes v the item.
func (f *Frame) setItem(v ref.Val) error {
	if err, bad := v.(*types.Err); bad {
		return err
	}
	if cell, plain := fromCEL(v); plain {
		if _, bytes := v.(types.Bytes); !bytes && cell.Kind != message.Timestamp {
			f.item, f.itemCEL = cell, nil
			return nil
		}
	}
	f.item, f.itemCEL = message.Value{}, v
	return nil
}
