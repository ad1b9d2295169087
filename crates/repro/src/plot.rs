//! From runs to the figures of an experiment.

use std::path::PathBuf;

use crate::experiment::{Experiment, Plot, PlotKind};
use crate::metrics::{Run, quantity};
use crate::runs::{number, written};
use crate::{evaluate::Measured, names::Names};
use xoff_results::grid::Grid;
use xoff_results::grid::interval::{Interval, spread};
use xoff_results::svg::{Figure, Line, Panel, Point};

/// Most points of a line: more cannot be seen.
const POINTS: usize = 1000;

pub struct Drawn<'a> {
    pub e: &'a Experiment,
    pub quick: bool,
    pub grid: &'a Grid,
    pub measured: &'a Measured,
    /// Where the directory of each run is.
    pub place: &'a dyn Fn(usize) -> PathBuf,
}

impl Drawn<'_> {
    /// A figure. Fails if a file of a run cannot be read. The experiment must be checked.
    pub fn figure(&self, plot: &Plot) -> Result<Figure, String> {
        let mut figure = Figure {
            title: plot.title.clone(),
            x: plot.x.clone().unwrap_or_default(),
            y: plot.y.clone().unwrap_or_default(),
            categories: Vec::new(),
            log_x: plot.log_x,
            panels: Vec::new(),
        };
        if self.quick {
            figure.title.push_str(" (quick version)");
        }
        if self.measured.iter().any(Option::is_none) {
            figure.title.push_str(" (PARTIAL)");
        }
        match plot.kind {
            PlotKind::Lines => self.lines(plot, &mut figure)?,
            PlotKind::Cdf => self.distributions(plot, &mut figure)?,
            PlotKind::Bars => self.bars(plot, &mut figure),
            PlotKind::Curves => self.curves(plot, &mut figure),
        }
        Ok(figure)
    }

    /// The points that are drawn: number and name, in the order of the grid.
    fn points(&self, plot: &Plot, without: Option<&str>) -> Vec<(usize, String)> {
        let axes = &self.grid.axes;
        let heads = self.grid.heads();
        let mut found = Vec::new();
        for point in 0..self.grid.points().unwrap_or(0) {
            let values = self.grid.values(point);
            let run = values[0].to_string();
            let fixed = |key: &str, value: &str| plot.at.get(key).is_none_or(|v| written(v) == value);
            let fits = axes[1..].iter().zip(&values[1..]).all(|(axis, value)| fixed(&axis.key, value));
            if !fits || !(plot.runs.is_empty() || plot.runs.contains(&run)) {
                continue;
            }
            let mut name = run;
            for ((axis, head), value) in axes.iter().zip(&heads).zip(&values).skip(1) {
                // A value that all lines share need not be in the legend.
                let open = !plot.at.contains_key(&axis.key) && without != Some(axis.key.as_str());
                if open && axis.values.len() > 1 {
                    name.push_str(&format!(", {head}={}", value.trim_matches('"')));
                }
            }
            found.push((point, name));
        }
        found
    }

    /// The runs of a point that are done.
    fn runs(&self, point: usize) -> impl Iterator<Item = usize> + '_ {
        let n = self.grid.per_point();
        (point * n..(point + 1) * n).filter(|&run| self.measured[run].is_some())
    }

    /// The mean of a metric over the seeds of a point, and its 95% interval.
    fn mean(&self, point: usize, metric: usize, x: f64) -> Option<Point> {
        let value = |run: usize| self.measured[run].as_ref().and_then(|values| values[metric].value);
        let values: Vec<f64> = self.runs(point).filter_map(value).collect();
        let s = spread(&values, Interval::Ci95)?;
        Some(Point { x, y: s.mean, range: s.low.zip(s.high) })
    }

    /// From each point's first seed: events happen at different times under different seeds, and an average
    /// over seeds would smooth them away.
    fn lines(&self, plot: &Plot, figure: &mut Figure) -> Result<(), String> {
        let what = plot.quantity.as_deref().expect("a plot was checked");
        let units = quantity(what).expect("a plot was checked").units();
        let named = |u: &&(&str, f64)| plot.unit.as_deref().is_none_or(|unit| unit == u.0);
        let (unit, scale) = *units.iter().find(named).expect("a plot was checked");
        for (point, name) in self.points(plot, None) {
            let mut panel = Panel { title: name, lines: Vec::new() };
            if let Some(run) = self.runs(point).next() {
                let run = Run::at(&(self.place)(run));
                for element in &plot.elements {
                    let samples = run.samples(what, &Names(vec![element.clone()]), (0, u64::MAX))?;
                    let points =
                        samples.iter().map(|&(t, v)| Point { x: t as f64 / 1e9, y: v / scale, range: None });
                    panel.lines.push(Line { name: element.clone(), points: thinned(points.collect()) });
                }
            }
            figure.panels.push(panel);
        }
        label(&mut figure.x, "time", "ms");
        label(&mut figure.y, what, unit);
        Ok(())
    }

    /// Of all seeds of a point together.
    fn distributions(&self, plot: &Plot, figure: &mut Figure) -> Result<(), String> {
        let metric = &self.e.metric[self.e.metric_index(&plot.metrics[0]).expect("a plot was checked")];
        let mut panel = Panel { title: String::new(), lines: Vec::new() };
        for (point, name) in self.points(plot, None) {
            let mut all = Vec::new();
            for run in self.runs(point) {
                all.extend(Run::at(&(self.place)(run)).distribution(metric)?);
            }
            all.sort_unstable_by(f64::total_cmp);
            let n = all.len() as f64;
            let points = all.iter().zip(1..).map(|(&x, i)| Point { x, y: f64::from(i) / n, range: None });
            panel.lines.push(Line { name, points: thinned(points.collect()) });
        }
        figure.panels.push(panel);
        label(&mut figure.x, &metric.of, metric.scale().0);
        label(&mut figure.y, "share of flows", "");
        Ok(())
    }

    fn bars(&self, plot: &Plot, figure: &mut Figure) {
        let points = self.points(plot, None);
        let line = |name: &String| {
            let metric = self.e.metric_index(name).expect("a plot was checked");
            let of = |(i, (point, _)): (usize, &(usize, String))| self.mean(*point, metric, i as f64);
            Line { name: name.clone(), points: points.iter().enumerate().filter_map(of).collect() }
        };
        let lines = plot.metrics.iter().map(line).collect();
        figure.panels.push(Panel { title: String::new(), lines });
        figure.categories = points.iter().map(|(_, name)| name.clone()).collect();
        let metric = &self.e.metric[self.e.metric_index(&plot.metrics[0]).expect("a plot was checked")];
        label(&mut figure.y, &metric.name, metric.scale().0);
    }

    fn curves(&self, plot: &Plot, figure: &mut Figure) {
        let key = plot.along.as_deref().expect("a plot was checked");
        let metric = self.e.metric_index(&plot.metrics[0]).expect("a plot was checked");
        let vary = self.e.vary(self.quick);
        let axis = vary.iter().position(|v| v.key == key).expect("a plot was checked");
        let mut lines: Vec<Line> = Vec::new();
        for (point, name) in self.points(plot, Some(key)) {
            let value = self.grid.values(point)[axis + 1];
            let at = vary[axis].values.iter().find(|v| written(v) == value).and_then(number);
            let at = at.expect("a plot was checked").0;
            let index = lines.iter().position(|l| l.name == name).unwrap_or_else(|| {
                lines.push(Line { name, points: Vec::new() });
                lines.len() - 1
            });
            lines[index].points.extend(self.mean(point, metric, at));
        }
        lines.iter_mut().for_each(|line| line.points.sort_by(|a, b| a.x.total_cmp(&b.x)));
        figure.panels.push(Panel { title: String::new(), lines });
        let metric = &self.e.metric[metric];
        label(&mut figure.x, key, "");
        label(&mut figure.y, &metric.name, metric.scale().0);
    }
}

/// Labels an axis that has no label yet: `fct (us)`.
fn label(text: &mut String, what: &str, unit: &str) {
    if text.is_empty() {
        *text = if unit.is_empty() { what.into() } else { format!("{what} ({unit})") };
    }
}

/// At most [`POINTS`] of them, evenly chosen, the first and the last included.
fn thinned(points: Vec<Point>) -> Vec<Point> {
    let n = points.len();
    if n <= POINTS {
        return points;
    }
    (0..POINTS).map(|i| points[i * (n - 1) / (POINTS - 1)].clone()).collect()
}
