//! Pictures (SVG) of a check's findings: the cycle of a deadlock, and the worst blocking tree. They consist
//! of shapes and system fonts on white. Their colours (Okabe and Ito's) suit colour-blind readers, and each
//! colour has a shape or a dash with the same meaning. The same report gives the same bytes.

mod cycle;
mod tree;

pub use cycle::cycle;
pub use tree::blocking;

use std::fmt::Write;

mod ink {
    pub const TEXT: &str = "#222222";
    pub const FAINT: &str = "#777777";
    pub const LINE: &str = "#555555";
    pub const GUILTY: &str = "#D55E00";
    pub const VICTIM: &str = "#0072B2";
    pub const FLOWS: [&str; 6] = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
}

struct Svg {
    width: f64,
    height: f64,
    body: String,
}

impl Svg {
    fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    /// An element of the name `tag`, with its attributes as they are written.
    fn shape(&mut self, tag: &str, attributes: &str) {
        let _ = writeln!(self.body, "<{tag} {attributes}/>");
    }

    fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), style: &str) {
        self.shape(
            "rect",
            &format!("x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" {style}"),
        );
    }

    fn path(&mut self, d: &str, style: &str) {
        self.shape("path", &format!("d=\"{d}\" fill=\"none\" {style}"));
    }

    /// Text at a place; `style` are further attributes, such as its anchor.
    fn text(&mut self, (x, y): (f64, f64), size: f64, style: &str, text: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        // The light outline is a separate element, because not every viewer supports `paint-order`.
        for light in [" stroke=\"white\" stroke-width=\"3\" aria-hidden=\"true\"", ""] {
            let _ = writeln!(
                self.body,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size:.0}\" {style}{light}>{text}</text>"
            );
        }
    }

    /// A disc: the mark of culprits.
    fn disc(&mut self, (x, y): (f64, f64)) {
        self.shape("circle", &format!("cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\" fill=\"{}\"", ink::GUILTY));
    }

    /// A diamond: the mark of victims.
    fn diamond(&mut self, (x, y): (f64, f64)) {
        let (left, right, top, bottom) = (x - 6.0, x + 6.0, y - 6.0, y + 6.0);
        let d = format!("M{left:.1} {y:.1} L{x:.1} {top:.1} L{right:.1} {y:.1} L{x:.1} {bottom:.1} Z");
        self.shape("path", &format!("d=\"{d}\" fill=\"{}\"", ink::VICTIM));
    }

    /// The whole file. `title` is for readers who see no picture.
    fn finish(self, title: &str) -> String {
        let Self { width: w, height: h, body } = self;
        let title = title.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let mut markers = String::new();
        for (i, colour) in [ink::LINE].iter().chain(&ink::FLOWS).enumerate() {
            let _ = write!(
                markers,
                "<marker id=\"a{i}\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"9\" markerHeight=\"9\" \
                 markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 0 L10 5 L0 10 Z\" fill=\"{colour}\"/></marker>"
            );
        }
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w:.0}\" height=\"{h:.0}\" viewBox=\"0 0 {w:.0} {h:.0}\" \
             font-family=\"Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif\" fill=\"{ink}\">\n<title>{title}</title>\n<desc>Made by xoff check</desc>\n<defs>{markers}</defs>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}</svg>\n",
            ink = ink::TEXT,
        )
    }
}

fn width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * 0.56
}

/// A text cut to at most `most` characters, which is shown by an ellipsis.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_string();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}
