package datum

import (
	"math"

	"github.com/tallystick/tallystick/sql/pgerr"
)

// JSONPathType is the type jsonpath. A value is the canonical text of the path,
// as jsonpath_out prints it; [ParseJSONPath] makes a tree of it.
var JSONPathType = &Desc{OID: JSONPathOID, Name: "jsonpath", Len: -1, Kind: Base, Category: 'U'}

// The OIDs of jsonpath and its array type.
const (
	JSONPathOID      OID = 4072
	JSONPathArrayOID OID = 4073
)

// PathOp says what a [PathNode] does (JsonPathItemType in PostgreSQL's jsonpath.h).
type PathOp uint8

// The operations of path expressions.
const (
	PathNull PathOp = iota
	PathString
	PathNumber
	PathBool
	PathVariable
	PathRoot    // $
	PathCurrent // @
	PathLast    // last
	PathKey     // .key
	PathAnyKey  // .*
	PathAny     // .** with First and Last
	PathAnyElem // [*]
	PathIndex   // [Subscripts]
	PathFilter  // ?(Left)
	PathOr
	PathAnd
	PathNot
	PathIsUnknown
	PathExists
	PathEqual
	PathNotEqual
	PathLess
	PathLessEqual
	PathGreater
	PathGreaterEqual
	PathStartsWith
	PathLikeRegex
	PathAdd
	PathSub
	PathMul
	PathDiv
	PathMod
	PathPlus
	PathMinus
	PathMethod // .Str()
)

// PathEnd is First or Last of [PathAny] where the path says last.
const PathEnd = math.MaxUint32

// PathNode is one step of a path, or an operator. Next is what is applied to its
// result.
type PathNode struct {
	Op          PathOp
	Str         string // key, string, name of a variable or method, pattern
	Flags       string // of like_regex, each of i, s, m, q once, in this order
	Num         Datum  // the numeric of a number; 1 and 0 for booleans
	Left, Right *PathNode
	Subscripts  []PathSubscript
	First, Last uint32
	Next        *PathNode
}

// PathSubscript is one subscript of an array; To is nil for a single element.
type PathSubscript struct{ From, To *PathNode }

// JSONPath is a path expression taken apart. It is never changed.
type JSONPath struct {
	Strict bool
	Root   *PathNode
}

// CheckPathRegex checks the pattern of a like_regex when a path is read; the
// package that knows regular expressions sets it.
var CheckPathRegex func(pattern, flags string) error

func parsePathText(s string, _ int32, _ *Format) (Datum, error) {
	if err := CheckText(s); err != nil {
		return Null, err
	}
	p, err := ParseJSONPath(s)
	if err != nil {
		return Null, err
	}
	return Bytes(p.append(nil)), nil
}

// parseBinaryPath reads jsonpath_send's form: a version byte and the text.
func parseBinaryPath(b []byte, _ int32) (Datum, error) {
	if len(b) == 0 {
		return Null, errShort()
	}
	if b[0] != 1 {
		return Null, pgerr.New(pgerr.InternalError, "unsupported jsonpath version number: %d", b[0])
	}
	return parsePathText(string(b[1:]), -1, nil)
}

func appendBinaryPath(dst []byte, d Datum) []byte { return append(append(dst, 1), d.Bytes()...) }

// append writes the canonical text (jsonPathToCstring).
func (p *JSONPath) append(dst []byte) []byte {
	if p.Strict {
		dst = append(dst, "strict "...)
	}
	return p.Root.append(dst, false, true)
}

var pathOperators = [...]string{
	PathOr: "||", PathAnd: "&&", PathEqual: "==", PathNotEqual: "!=", PathLess: "<", PathLessEqual: "<=", PathGreater: ">",
	PathGreaterEqual: ">=", PathStartsWith: "starts with", PathAdd: "+", PathSub: "-", PathMul: "*", PathDiv: "/", PathMod: "%",
	PathPlus: "+", PathMinus: "-", PathMethod: "",
}

// priority is how tightly an operation binds (operationPriority).
func (n *PathNode) priority() int {
	switch n.Op {
	case PathOr:
		return 0
	case PathAnd:
		return 1
	case PathEqual, PathNotEqual, PathLess, PathLessEqual, PathGreater, PathGreaterEqual, PathStartsWith:
		return 2
	case PathAdd, PathSub:
		return 3
	case PathMul, PathDiv, PathMod:
		return 4
	case PathPlus, PathMinus:
		return 5
	}
	return 6
}

// append writes a node and all that follows it. inKey: it stands behind another
// one; brackets: an operator is put in parentheses.
func (n *PathNode) append(dst []byte, inKey, brackets bool) []byte {
	dst = n.appendSelf(dst, inKey, brackets)
	if n.Next != nil {
		dst = n.Next.append(dst, true, true)
	}
	return dst
}

func (n *PathNode) appendSelf(dst []byte, inKey, brackets bool) []byte {
	switch n.Op {
	case PathNull:
		return append(dst, "null"...)
	case PathString:
		return AppendJSONString(dst, n.Str)
	case PathNumber:
		if n.Next != nil { // a dot behind the digits would belong to the number
			return append(append(append(dst, '('), NumericText(n.Num)...), ')')
		}
		return append(dst, NumericText(n.Num)...)
	case PathBool:
		if n.Num.Bool() {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case PathVariable:
		return AppendJSONString(append(dst, '$'), n.Str)
	case PathRoot:
		return append(dst, '$')
	case PathCurrent:
		return append(dst, '@')
	case PathLast:
		return append(dst, "last"...)
	case PathAnyElem:
		return append(dst, "[*]"...)
	case PathIndex:
		return n.appendSubscripts(dst)
	case PathKey, PathAnyKey, PathAny:
		if inKey {
			dst = append(dst, '.')
		}
		switch n.Op {
		case PathKey:
			return AppendJSONString(dst, n.Str)
		case PathAnyKey:
			return append(dst, '*')
		}
		return n.appendLevels(dst)
	case PathFilter:
		return append(n.Left.append(append(dst, "?("...), false, false), ')')
	case PathNot:
		return append(n.Left.append(append(dst, "!("...), false, false), ')')
	case PathIsUnknown:
		return append(n.Left.append(append(dst, '('), false, false), ") is unknown"...)
	case PathExists:
		return append(n.Left.append(append(dst, "exists ("...), false, false), ')')
	case PathMethod:
		dst = append(append(append(dst, '.'), n.Str...), '(')
		if n.Left != nil {
			dst = n.Left.append(dst, false, false)
		}
		return append(dst, ')')
	}
	return n.appendOperator(dst, brackets)
}

func (n *PathNode) appendOperator(dst []byte, brackets bool) []byte {
	if brackets {
		dst = append(dst, '(')
	}
	operand := func(o *PathNode) { dst = o.append(dst, false, o.priority() <= n.priority()) }
	switch n.Op {
	case PathPlus, PathMinus:
		dst = append(dst, pathOperators[n.Op]...)
		operand(n.Left)
	case PathLikeRegex:
		operand(n.Left)
		dst = AppendJSONString(append(dst, " like_regex "...), n.Str)
		if n.Flags != "" {
			dst = append(append(append(dst, ` flag "`...), n.Flags...), '"')
		}
	default:
		operand(n.Left)
		dst = append(append(append(dst, ' '), pathOperators[n.Op]...), ' ')
		operand(n.Right)
	}
	if brackets {
		dst = append(dst, ')')
	}
	return dst
}

func (n *PathNode) appendSubscripts(dst []byte) []byte {
	dst = append(dst, '[')
	for i, s := range n.Subscripts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = s.From.append(dst, false, false)
		if s.To != nil {
			dst = s.To.append(append(dst, " to "...), false, false)
		}
	}
	return append(dst, ']')
}

func (n *PathNode) appendLevels(dst []byte) []byte {
	level := func(v uint32) {
		if v == PathEnd {
			dst = append(dst, "last"...)
		} else {
			dst = appendInt(dst, Int(int64(v)), nil)
		}
	}
	dst = append(dst, "**"...)
	if n.First == 0 && n.Last == PathEnd {
		return dst
	}
	dst = append(dst, '{')
	level(n.First)
	if n.First != n.Last {
		dst = append(dst, " to "...)
		level(n.Last)
	}
	return append(dst, '}')
}
