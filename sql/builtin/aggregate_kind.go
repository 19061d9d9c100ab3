package builtin

// AggKind is pg_aggregate.aggkind.
type AggKind byte

// The kinds of aggregates.
const (
	NormalAgg       AggKind = 'n'
	OrderedSetAgg   AggKind = 'o'
	HypotheticalAgg AggKind = 'h'
)

// AggKind tells what kind of aggregate f is. The executor computes ordered-set
// and hypothetical-set aggregates by name: they have no NewState.
func (f *Func) AggKind() AggKind {
	if f.Kind != Aggregate {
		return NormalAgg
	}
	switch f.Name {
	case "percentile_cont", "percentile_disc", "mode":
		return OrderedSetAgg
	case "rank", "dense_rank", "percent_rank", "cume_dist":
		return HypotheticalAgg
	}
	return NormalAgg
}
