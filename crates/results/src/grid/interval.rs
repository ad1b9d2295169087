//! A metric over seeds: its mean, and the spread of the seeds.

use serde::Serialize;

/// The interval beside a mean over seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Interval {
    /// The least and the greatest value.
    #[default]
    Range,
    /// The 95% confidence interval of the mean, by Student's t. It takes the seeds' values for independent and
    /// normally distributed.
    Ci95,
}

/// A metric over the seeds of a point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Seeds that have a value.
    pub n: usize,
    /// Arithmetic mean of their values.
    pub mean: f64,
    /// Lower end of the interval; absent where one value has no confidence interval.
    pub low: Option<f64>,
    pub high: Option<f64>,
}

/// Degrees of freedom and the t that the absolute value of a variable of Student's distribution exceeds with
/// probability 5%. From the closed form of its distribution function for whole degrees of freedom (Abramowitz
/// and Stegun 26.7.3 and 26.7.4), solved by bisection, to six decimals.
const STUDENT_T: [(usize, f64); 39] = [
    (1, 12.706205),
    (2, 4.302653),
    (3, 3.182446),
    (4, 2.776445),
    (5, 2.570582),
    (6, 2.446912),
    (7, 2.364624),
    (8, 2.306004),
    (9, 2.262157),
    (10, 2.228139),
    (11, 2.200985),
    (12, 2.178813),
    (13, 2.160369),
    (14, 2.144787),
    (15, 2.131450),
    (16, 2.119905),
    (17, 2.109816),
    (18, 2.100922),
    (19, 2.093024),
    (20, 2.085963),
    (21, 2.079614),
    (22, 2.073873),
    (23, 2.068658),
    (24, 2.063899),
    (25, 2.059539),
    (26, 2.055529),
    (27, 2.051831),
    (28, 2.048407),
    (29, 2.045230),
    (30, 2.042272),
    (40, 2.021075),
    (50, 2.008559),
    (60, 2.000298),
    (80, 1.990063),
    (100, 1.983972),
    (120, 1.979930),
    (200, 1.971896),
    (500, 1.964720),
    (1000, 1.962339),
];

/// The two-sided 95% point of Student's t for at least one degree of freedom. Between two tabulated ones that
/// of the lower one, which errs towards a wider interval.
pub fn student_t(degrees: usize) -> f64 {
    let above = STUDENT_T.partition_point(|&(d, _)| d <= degrees);
    STUDENT_T[above.checked_sub(1).expect("at least one degree of freedom")].1
}

/// Mean and interval of `values`, summed in their order; `None` if there are none.
pub fn spread(values: &[f64], interval: Interval) -> Option<Spread> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let (low, high) = match interval {
        Interval::Range => {
            (values.iter().copied().min_by(f64::total_cmp), values.iter().copied().max_by(f64::total_cmp))
        }
        Interval::Ci95 if n < 2 => (None, None),
        Interval::Ci95 => {
            let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
            let variance = squares / (n - 1) as f64;
            let half = student_t(n - 1) * (variance / n as f64).sqrt();
            (Some(mean - half), Some(mean + half))
        }
    };
    Some(Spread { n, mean, low, high })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The density of Student's t without its constant factor.
    fn density(t: f64, degrees: usize) -> f64 {
        let base = 1.0 / (1.0 + t * t / degrees as f64);
        let half_powers = degrees + 1;
        let whole = base.powi((half_powers / 2) as i32);
        if half_powers.is_multiple_of(2) { whole } else { whole * base.sqrt() }
    }

    /// Simpson's rule over the density in x = t / (1 + t), so that the tail has an end.
    fn mass(from: f64, to: f64, degrees: usize) -> f64 {
        let steps = 20_000;
        let (a, b) = (from / (1.0 + from), to / (1.0 + to));
        let (a, b) = (a, if to.is_infinite() { 1.0 - 1e-9 } else { b });
        let at = |i: usize| {
            let x = a + (b - a) * i as f64 / steps as f64;
            density(x / (1.0 - x), degrees) / ((1.0 - x) * (1.0 - x))
        };
        let inner: f64 = (1..steps).map(|i| at(i) * if i % 2 == 1 { 4.0 } else { 2.0 }).sum();
        (at(0) + inner + at(steps)) * (b - a) / steps as f64 / 3.0
    }

    #[test]
    fn a_twentieth_of_the_mass_lies_beyond_every_tabulated_t() {
        for (degrees, t) in STUDENT_T {
            let beyond = mass(t, f64::INFINITY, degrees) / mass(0.0, f64::INFINITY, degrees);
            assert!((beyond - 0.05).abs() < 1e-6, "{degrees}: {beyond}");
        }
        assert!(STUDENT_T.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 > w[1].1));
    }

    #[test]
    fn between_the_lines_the_wider_one_counts() {
        assert_eq!(student_t(30), 2.042272);
        assert_eq!(student_t(39), 2.042272);
        assert_eq!(student_t(40), 2.021075);
        assert_eq!(student_t(1_000_000), 1.962339);
    }

    #[test]
    fn spreads_by_hand() {
        assert_eq!(spread(&[], Interval::Range), None);
        let one = Spread { n: 1, mean: 3.0, low: Some(3.0), high: Some(3.0) };
        assert_eq!(spread(&[3.0], Interval::Range), Some(one));
        assert_eq!(spread(&[3.0], Interval::Ci95), Some(Spread { low: None, high: None, ..one }));
        let range = spread(&[4.0, 1.0, 7.0], Interval::Range).unwrap();
        assert_eq!((range.mean, range.low, range.high), (4.0, Some(1.0), Some(7.0)));
        // Mean 4, standard deviation 3, so 3 / sqrt(3) times t of two degrees.
        let ci = spread(&[4.0, 1.0, 7.0], Interval::Ci95).unwrap();
        assert!((ci.high.unwrap() - 4.0 - 4.302653 * 3.0f64.sqrt()).abs() < 1e-12);
        assert!((ci.low.unwrap() + ci.high.unwrap() - 8.0).abs() < 1e-12);
    }
}
