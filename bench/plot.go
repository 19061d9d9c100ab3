package bench

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// Series is a line of a plot.
type Series struct {
	Name string
	X, Y []float64 // of the same length, X ascending
}

// Plot is a drawing of lines over one axis.
type Plot struct {
	Title, X, Y string
	LogX        bool // distances on the axis are ratios
	Series      []Series
}

// Size of a plot, in pixels.
const (
	plotWidth, plotHeight             = 640, 360
	marginLeft, marginRight           = 80, 150
	marginTop, marginBottom           = 36, 48
	innerWidth                        = plotWidth - marginLeft - marginRight
	innerHeight                       = plotHeight - marginTop - marginBottom
	ticksWanted                       = 5
	plotFont                          = "font-family=\"sans-serif\" font-size=\"12\""
	plotAxis, plotGrid, plotLineWidth = "#444", "#ddd", 2
)

// plotColors are told apart by the colour-blind too (Okabe and Ito).
var plotColors = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000"}

// SVG writes plots below each other as one drawing.
func SVG(w io.Writer, plots ...Plot) error {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" %s>`+"\n", plotWidth, plotHeight*len(plots), plotFont)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/>`+"\n")
	for i := range plots {
		fmt.Fprintf(&b, `<g transform="translate(0,%d)">`+"\n", i*plotHeight)
		plots[i].draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (p *Plot) draw(b *strings.Builder) {
	x, y := p.axis(func(s *Series) []float64 { return s.X }, p.LogX), p.axis(func(s *Series) []float64 { return s.Y }, false)
	if !p.LogX {
		x.low = 0
	}
	y.low = 0
	px := func(v float64) float64 { return marginLeft + innerWidth*x.place(v) }
	py := func(v float64) float64 { return marginTop + innerHeight*(1-y.place(v)) }
	text(b, marginLeft, 20, "start", p.Title)
	text(b, marginLeft+innerWidth/2, plotHeight-10, "middle", p.X)
	text(b, 8, marginTop-6, "start", p.Y)
	for _, v := range y.ticks() {
		fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="%s"/>`+"\n", marginLeft, marginLeft+innerWidth, py(v), py(v), plotGrid)
		text(b, marginLeft-6, py(v)+4, "end", short(v))
	}
	for _, v := range x.marks(p.Series) {
		fmt.Fprintf(b, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="%s"/>`+"\n", px(v), px(v), marginTop+innerHeight, marginTop+innerHeight+5, plotAxis)
		text(b, px(v), marginTop+innerHeight+18, "middle", short(v))
	}
	fmt.Fprintf(b, `<path d="M%d %dV%dH%d" fill="none" stroke="%s"/>`+"\n", marginLeft, marginTop, marginTop+innerHeight, marginLeft+innerWidth, plotAxis)
	for i := range p.Series {
		p.Series[i].draw(b, i, px, py)
	}
}

func (s *Series) draw(b *strings.Builder, i int, px, py func(float64) float64) {
	color := plotColors[i%len(plotColors)]
	points := make([]string, len(s.X))
	for j := range s.X {
		points[j] = fmt.Sprintf("%.1f,%.1f", px(s.X[j]), py(s.Y[j]))
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", px(s.X[j]), py(s.Y[j]), color)
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="%d"/>`+"\n", strings.Join(points, " "), color, plotLineWidth)
	top := float64(marginTop + 10 + 18*i)
	fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="%s" stroke-width="%d"/>`+"\n",
		marginLeft+innerWidth+12, marginLeft+innerWidth+32, top, top, color, plotLineWidth)
	text(b, marginLeft+innerWidth+38, top+4, "start", s.Name)
}

func text(b *strings.Builder, x, y float64, anchor, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, html.EscapeString(s))
}

// axis maps values to 0..1.
type axis struct {
	low, high float64
	log       bool
}

func (p *Plot) axis(of func(*Series) []float64, log bool) axis {
	a := axis{low: math.Inf(1), high: math.Inf(-1), log: log}
	for i := range p.Series {
		for _, v := range of(&p.Series[i]) {
			a.low, a.high = min(a.low, v), max(a.high, v)
		}
	}
	if math.IsInf(a.low, 1) {
		a.low, a.high = 0, 1
	}
	if a.high <= a.low {
		a.high = a.low + 1
	}
	return a
}

func (a *axis) place(v float64) float64 {
	if a.log && a.low > 0 {
		return math.Log(v/a.low) / math.Log(a.high/a.low)
	}
	return (v - a.low) / (a.high - a.low)
}

// ticks are round values between low and high.
func (a *axis) ticks() []float64 {
	step := math.Pow(10, math.Floor(math.Log10((a.high-a.low)/ticksWanted)))
	for _, m := range [...]float64{1, 2, 5, 10} {
		if (a.high-a.low)/(step*m) <= ticksWanted {
			step *= m
			break
		}
	}
	var list []float64
	for i := math.Ceil(a.low / step); i*step <= a.high; i++ {
		list = append(list, i*step)
	}
	return list
}

// marks are what stands at the x axis: on a logarithmic one the measured values,
// else round ones.
func (a *axis) marks(series []Series) []float64 {
	if !a.log {
		return a.ticks()
	}
	seen := map[float64]bool{}
	var list []float64
	for i := range series {
		for _, v := range series[i].X {
			if !seen[v] {
				seen[v] = true
				list = append(list, v)
			}
		}
	}
	return list
}

// short writes a number with few digits.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.4gM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.4gK", v/1e3)
	default:
		return fmt.Sprintf("%.4g", v)
	}
}

// PlotClients draws throughput and latency over the number of clients.
func PlotClients(title string, reports []*Report) []Plot {
	tps, p50, p99 := Series{Name: "throughput"}, Series{Name: "p50"}, Series{Name: "p99"}
	for _, r := range reports {
		x := float64(r.Clients)
		for _, s := range [...]struct {
			series *Series
			y      float64
		}{{&tps, r.TPS}, {&p50, r.LatencyMS.P50}, {&p99, r.LatencyMS.P99}} {
			s.series.X, s.series.Y = append(s.series.X, x), append(s.series.Y, s.y)
		}
	}
	return []Plot{
		{Title: title + ": throughput", X: "clients", Y: "operations/s", LogX: true, Series: []Series{tps}},
		{Title: title + ": latency", X: "clients", Y: "ms", LogX: true, Series: []Series{p50, p99}},
	}
}
