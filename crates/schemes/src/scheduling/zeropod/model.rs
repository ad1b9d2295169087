//! The share of optimistic sending that arrives, in closed form (*Zeropod*, §IV-B.3, equations 1 to 7).
//!
//! A pod of a fat-tree: m racks of m hosts and m aggregation switches. Nothing is scheduled. Each host
//! sends cells at random times (Poisson), each to any host by any aggregation switch. Two cells that
//! meet on a link are both lost, so a cell is lost to all that begin within a cell time before or
//! after it. A lost cell goes on and meets others as well: the model counts all cells on all links.
//!
//! Everywhere `load` is the paper's G, the offered cells of a host per cell time, 0 or above; and `m` the
//! hosts of a rack, at least 1, half the ports of a switch.
//!
//! As printed, m·G for the sender's rack (equation 3) counts the cell's own host too, whose cells
//! cannot meet it there (`zeropod.model-self-traffic`), and a host may send to itself.

/// Equation 4: the share of cells from the same rack that avoid the path of a given cell.
pub fn avoid_in_rack(m: u32) -> f64 {
    let other = 1.0 - 1.0 / f64::from(m);
    // By another aggregation switch; and to another rack, or to another host of the same one.
    other * (other + other / f64::from(m))
}

/// Equation 5: the same of cells from another rack.
pub fn avoid_between_racks(m: u32) -> f64 {
    let other = 1.0 - 1.0 / f64::from(m);
    // By the same aggregation switch and to another rack; or as in equation 4.
    other / f64::from(m) + avoid_in_rack(m)
}

/// Equation 6: P, the share of cells that come through.
pub fn success(load: f64, m: u32) -> f64 {
    (-2.0 * load * exponent(m)).exp()
}

/// Its limit for large m, from above: e^(−6G).
pub fn least_success(load: f64) -> f64 {
    (-6.0 * load).exp()
}

/// Equations 1 and 7: S, the cells of a host that come through, per cell time.
pub fn goodput(load: f64, m: u32) -> f64 {
    load * success(load, m)
}

/// The load with the most goodput: 1/(6 − 4/m).
pub fn best_load(m: u32) -> f64 {
    0.5 / exponent(m)
}

/// The most goodput: 1/((6 − 4/m)·e).
pub fn most_goodput(m: u32) -> f64 {
    best_load(m) / std::f64::consts::E
}

/// 3 − 2/m.
fn exponent(m: u32) -> f64 {
    3.0 - 2.0 / f64::from(m)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: f64, printed: f64, half: f64) {
        assert!((value - printed).abs() <= half, "{value}, and not {printed}");
    }

    #[test]
    fn the_papers_numbers() {
        // k = 8, 32 and 128 ports.
        for (m, p) in [(4, 0.6065), (16, 0.5627), (64, 0.5523)] {
            near(success(0.1, m), p, 0.000_05);
        }
        assert!(success(0.1, 16) > 0.55);
        near(least_success(0.1), 0.5488, 0.000_05);
        for (m, load, most) in [(4, 0.2, 0.0736), (16, 0.1739, 0.0640)] {
            near(best_load(m), load, 0.000_05);
            near(most_goodput(m), most, 0.000_05);
        }
        near(avoid_in_rack(16), 0.93384, 0.000_005);
        near(avoid_between_racks(16), 0.99243, 0.000_005);
    }

    /// Equation 6 is the result of equations 2 to 5.
    #[test]
    fn the_equations_agree() {
        for m in 1..=128 {
            let (hosts, load) = (f64::from(m), 0.1);
            let (in_rack, others) = (hosts * load, hosts * (hosts - 1.0) * load);
            let all = in_rack * (avoid_in_rack(m) - 1.0) + others * (avoid_between_racks(m) - 1.0);
            near((2.0 * all).exp(), success(load, m), 1e-12);
            assert!(success(load, m) > least_success(load));
            // Neither less nor more load gives more.
            let best = best_load(m);
            near(goodput(best, m), most_goodput(m), 1e-12);
            assert!(goodput(0.99 * best, m) < most_goodput(m) && goodput(1.01 * best, m) < most_goodput(m));
        }
    }

    /// Equations 4 and 5 count paths: all of them, beside one by aggregation switch 0 from rack 0 to
    /// host 1 of rack 1.
    #[test]
    fn paths_that_share_no_link_are_as_many() {
        for m in [2, 4, 7, 16] {
            for (from, share) in [(0, avoid_in_rack(m)), (1, avoid_between_racks(m))] {
                let paths = (0..m).flat_map(|agg| (0..m * m).map(move |to| (agg, to / m, to % m)));
                let apart = paths.filter(|&(agg, rack, host)| {
                    let up = (from, agg) == (0, 0);
                    let down = (agg, rack) == (0, 1);
                    let last = (rack, host) == (1, 1);
                    !(up || down || last)
                });
                near(apart.count() as f64 / f64::from(m.pow(3)), share, 1e-12);
            }
        }
    }
}
