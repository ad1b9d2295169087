//! Orders and shortest cycles against brute force, on all small graphs.

use xoff_check::graph::{Edges, Graph, Part, Wait};
use xoff_kernel::random::Stream;

fn wait(n: usize) -> Wait {
    Wait { port: n as u32, lane: 0, part: Part::Whole }
}

fn graph(edges: &[(usize, usize)]) -> Graph {
    let mut all = Edges::default();
    for &(a, b) in edges {
        all.add(wait(a), wait(b));
    }
    all.graph()
}

/// Length of a shortest cycle by trying every path, from every node.
fn brute(n: usize, edges: &[(usize, usize)]) -> Option<usize> {
    fn longer(edges: &[(usize, usize)], path: &mut Vec<usize>, best: &mut Option<usize>) {
        let last = *path.last().unwrap();
        for &(_, to) in edges.iter().filter(|e| e.0 == last) {
            if to == path[0] {
                *best = Some(best.map_or(path.len(), |b| b.min(path.len())));
            } else if !path.contains(&to) {
                path.push(to);
                longer(edges, path, best);
                path.pop();
            }
        }
    }
    let mut best = None;
    (0..n).for_each(|start| longer(edges, &mut vec![start], &mut best));
    best
}

/// Compares with brute force; true if there is a cycle.
fn agrees(n: usize, edges: &[(usize, usize)]) -> bool {
    let graph = graph(edges);
    let expected = brute(n, edges);
    let (order, cycle) = (graph.order(), graph.shortest_cycle());
    assert_eq!(order.is_none(), expected.is_some(), "{edges:?}");
    assert_eq!(cycle.as_ref().map(|c| c.waits.len()), expected, "{edges:?}");
    if let Some(order) = order {
        let place = |n: usize| order.iter().position(|w| *w == wait(n)).expect("every node is listed");
        assert!(edges.iter().all(|&(a, b)| place(a) < place(b)), "{edges:?} {order:?}");
    }
    if let Some(cycle) = &cycle {
        assert!(cycle.shortest);
        for (i, from) in cycle.waits.iter().enumerate() {
            let to = cycle.waits[(i + 1) % cycle.waits.len()];
            assert!(edges.contains(&(from.port as usize, to.port as usize)), "{edges:?} {cycle:?}");
        }
    }
    cycle.is_some()
}

#[test]
fn all_graphs_of_up_to_four_nodes() {
    let mut cyclic = 0;
    for n in 1..=4usize {
        let pairs: Vec<(usize, usize)> = (0..n * n).map(|i| (i / n, i % n)).collect();
        for bits in 0..1u32 << (n * n) {
            let edges: Vec<_> = (0..n * n).filter(|i| bits >> i & 1 == 1).map(|i| pairs[i]).collect();
            cyclic += u32::from(agrees(n, &edges));
        }
    }
    // Labelled acyclic digraphs of 1 to 4 nodes: 1, 3, 25 and 543 (Robinson 1973).
    assert_eq!((2 + 16 + 512 + 65_536) - cyclic, 1 + 3 + 25 + 543);
}

#[test]
fn random_graphs_of_five_to_seven_nodes() {
    let mut random = Stream::new(1, "graphs", 0);
    let mut counts = [0, 0];
    for _ in 0..20_000 {
        let n = 5 + random.below(3) as usize;
        let m = random.below(2 * n as u64 + 1);
        let mut edges: Vec<(usize, usize)> =
            (0..m).map(|_| (random.below(n as u64) as usize, random.below(n as u64) as usize)).collect();
        edges.sort_unstable();
        edges.dedup();
        counts[usize::from(agrees(n, &edges))] += 1;
    }
    assert!(counts[0] > 1_000 && counts[1] > 1_000, "{counts:?}");
}
