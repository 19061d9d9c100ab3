package plan

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// location returns the byte position of a node in its text, -1 if unknown.
func location(n *pg.Node) int32 {
	if n == nil {
		return -1
	}
	switch n := n.Node.(type) {
	case *pg.Node_AConst:
		return n.AConst.Location
	case *pg.Node_ColumnRef:
		return n.ColumnRef.Location
	case *pg.Node_ParamRef:
		return n.ParamRef.Location
	case *pg.Node_AExpr:
		if n.AExpr.Lexpr != nil {
			if l := location(n.AExpr.Lexpr); l >= 0 {
				return min(l, n.AExpr.Location)
			}
		}
		return n.AExpr.Location
	case *pg.Node_FuncCall:
		return n.FuncCall.Location
	case *pg.Node_TypeCast:
		if l := location(n.TypeCast.Arg); l >= 0 && (n.TypeCast.Location < 0 || l < n.TypeCast.Location) {
			return l
		}
		return n.TypeCast.Location
	case *pg.Node_SubLink:
		return n.SubLink.Location
	case *pg.Node_BoolExpr:
		return n.BoolExpr.Location
	case *pg.Node_RangeVar:
		return n.RangeVar.Location
	case *pg.Node_ResTarget:
		return n.ResTarget.Location
	case *pg.Node_CaseExpr:
		return n.CaseExpr.Location
	}
	return reflectedLocation(n)
}

// locations returns the location of every node of a list.
func locations(list []*pg.Node) []int32 {
	out := make([]int32, len(list))
	for i, n := range list {
		out[i] = location(n)
	}
	return out
}

// reflectedLocation reads the field "location" of any other kind of node.
func reflectedLocation(n *pg.Node) int32 {
	m := n.ProtoReflect()
	fd := m.WhichOneof(m.Descriptor().Oneofs().Get(0))
	if fd == nil {
		return -1
	}
	inner := m.Get(fd).Message()
	lf := inner.Descriptor().Fields().ByName("location")
	if lf == nil || lf.Kind() != protoreflect.Int32Kind {
		return -1
	}
	return int32(inner.Get(lf).Int())
}

// nodeName names the kind of a node for messages.
func nodeName(n *pg.Node) string {
	m := n.ProtoReflect()
	fd := m.WhichOneof(m.Descriptor().Oneofs().Get(0))
	if fd == nil {
		return "empty"
	}
	return strings.ReplaceAll(string(fd.Name()), "_", " ")
}
