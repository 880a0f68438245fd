//! A layered layout (Sugiyama, Tagawa, Toda 1981): layers by the longest way, order by barycentres, places by least squares.
//!
//! It draws a picture of a few hundred entries, so it is simple: an edge over several layers is cut at each of them, the
//! order within a layer follows the mean of the neighbours, and so do the places, as far as neighbours leave room.
#![expect(clippy::indexing_slicing, reason = "every index is made in this file, for vectors that never get shorter")]

/// The size of a box, and the room around it, in the units of the picture.
pub(super) const BOX: (f64, f64) = (216.0, 46.0);
const GAP: (f64, f64) = (26.0, 44.0);
/// The room that an edge takes where it passes a layer.
const LANE: f64 = 14.0;
/// How often the layers are gone through, down and up. More changes little.
const SWEEPS: usize = 8;

/// Where everything goes.
pub(super) struct Layout {
    /// The middle of each box.
    pub(super) boxes: Vec<(f64, f64)>,
    /// The points that each edge passes, from the lower side of a box to the upper side of another.
    pub(super) routes: Vec<Vec<(f64, f64)>>,
    /// Width and height of it all.
    pub(super) size: (f64, f64),
}

/// A box, or an edge where it passes a layer.
struct Vertex {
    layer: usize,
    width: f64,
    x: f64,
    above: Vec<usize>,
    below: Vec<usize>,
}

struct Layers {
    vertices: Vec<Vertex>,
    /// The vertices of each layer, from left to right.
    rows: Vec<Vec<usize>>,
}

/// Places `boxes` boxes; each edge is a pair of box numbers, the lower first.
pub(super) fn layout(boxes: usize, edges: &[(usize, usize)]) -> Layout {
    let mut layers = Layers::of(boxes, edges);
    let chains: Vec<Vec<usize>> = edges.iter().map(|edge| layers.chain(*edge)).collect();
    layers.fill_rows();
    for sweep in 0..SWEEPS {
        layers.sweep(sweep % 2 == 0, Layers::order);
    }
    layers.spread();
    for sweep in 0..SWEEPS {
        layers.sweep(sweep % 2 == 0, Layers::settle);
    }
    layers.finish(boxes, &chains)
}

impl Layers {
    /// Each box one layer below the lowest that leads to it.
    fn of(boxes: usize, edges: &[(usize, usize)]) -> Self {
        let mut into = vec![Vec::new(); boxes];
        edges.iter().for_each(|(from, to)| into[*to].push(*from));
        let mut vertices: Vec<Vertex> = Vec::with_capacity(boxes);
        for above in &into {
            let layer = above.iter().map(|from| vertices[*from].layer + 1).max().unwrap_or(0);
            vertices.push(Vertex { layer, width: BOX.0, x: 0.0, above: Vec::new(), below: Vec::new() });
        }
        Self { vertices, rows: Vec::new() }
    }

    /// The vertices of an edge, with a new one in each layer that it passes.
    fn chain(&mut self, (from, to): (usize, usize)) -> Vec<usize> {
        let mut chain = vec![from];
        for layer in self.vertices[from].layer + 1..self.vertices[to].layer {
            chain.push(self.vertices.len());
            self.vertices.push(Vertex { layer, width: LANE, x: 0.0, above: Vec::new(), below: Vec::new() });
        }
        chain.push(to);
        for pair in chain.windows(2) {
            self.vertices[pair[0]].below.push(pair[1]);
            self.vertices[pair[1]].above.push(pair[0]);
        }
        chain
    }

    fn fill_rows(&mut self) {
        let layers = self.vertices.iter().map(|vertex| vertex.layer + 1).max().unwrap_or(0);
        self.rows = vec![Vec::new(); layers];
        for (at, vertex) in self.vertices.iter().enumerate() {
            self.rows[vertex.layer].push(at);
        }
        self.spread();
    }

    /// Puts the vertices of each row beside one another.
    fn spread(&mut self) {
        for row in &self.rows {
            let mut x = 0.0;
            for at in row {
                let vertex = &mut self.vertices[*at];
                vertex.x = x + vertex.width / 2.0;
                x += vertex.width + GAP.0;
            }
        }
    }

    /// Goes through the rows, downwards or upwards, and has each follow the one before.
    fn sweep(&mut self, down: bool, follow: impl Fn(&mut Self, usize, bool)) {
        let rows = 0..self.rows.len();
        if down {
            rows.for_each(|row| follow(self, row, true))
        } else {
            rows.rev().for_each(|row| follow(self, row, false))
        }
    }

    /// Where the neighbours in the row before want a vertex to be: at their mean; where it is if there are none.
    fn wish(&self, at: usize, down: bool) -> f64 {
        let vertex = &self.vertices[at];
        let neighbours = if down { &vertex.above } else { &vertex.below };
        if neighbours.is_empty() {
            return vertex.x;
        }
        neighbours.iter().map(|other| self.vertices[*other].x).sum::<f64>() / neighbours.len() as f64
    }

    /// Sorts a row by the wishes.
    fn order(&mut self, row: usize, down: bool) {
        let mut wishes: Vec<(f64, usize)> = self.rows[row].iter().map(|at| (self.wish(*at, down), *at)).collect();
        wishes.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.rows[row] = wishes.into_iter().map(|(_, at)| at).collect();
        let mut x = 0.0;
        for at in self.rows[row].clone() {
            let vertex = &mut self.vertices[at];
            vertex.x = x + vertex.width / 2.0;
            x += vertex.width + GAP.0;
        }
    }

    /// Moves a row as near to the wishes as its order and widths allow, by least squares: those that would overlap
    /// become one block at the mean of what they want (pool adjacent violators).
    fn settle(&mut self, row: usize, down: bool) {
        let members = &self.rows[row];
        let (mut offsets, mut offset) = (Vec::with_capacity(members.len()), 0.0);
        // Blocks as the sum of wishes and how many wish.
        let mut blocks: Vec<(f64, usize)> = Vec::new();
        for at in members {
            let width = self.vertices[*at].width;
            offsets.push(offset + width / 2.0);
            let mut block = (self.wish(*at, down) - offset - width / 2.0, 1);
            while let Some(before) = blocks.pop_if(|before| before.0 / before.1 as f64 > block.0 / block.1 as f64) {
                block = (block.0 + before.0, block.1 + before.1);
            }
            blocks.push(block);
            offset += width + GAP.0;
        }
        let means = blocks.into_iter().flat_map(|(sum, count)| std::iter::repeat_n(sum / count as f64, count));
        for ((at, offset), mean) in self.rows[row].clone().into_iter().zip(offsets).zip(means) {
            self.vertices[at].x = mean + offset;
        }
    }

    fn finish(&self, boxes: usize, chains: &[Vec<usize>]) -> Layout {
        let left = self.vertices.iter().map(|v| v.x - v.width / 2.0).fold(f64::INFINITY, f64::min);
        let right = self.vertices.iter().map(|v| v.x + v.width / 2.0).fold(f64::NEG_INFINITY, f64::max);
        let step = BOX.1 + GAP.1;
        let place = |at: usize| {
            let vertex = &self.vertices[at];
            (vertex.x - left + GAP.0, vertex.layer as f64 * step + BOX.1 / 2.0 + GAP.1 / 2.0)
        };
        let route = |chain: &Vec<usize>| {
            let last = chain.len() - 1;
            let point = |(number, at): (usize, &usize)| {
                let (x, y) = place(*at);
                let side = if number == 0 {
                    BOX.1 / 2.0
                } else if number == last {
                    -BOX.1 / 2.0
                } else {
                    0.0
                };
                (x, y + side)
            };
            chain.iter().enumerate().map(point).collect()
        };
        let width = if boxes == 0 { 0.0 } else { right - left };
        Layout {
            boxes: (0..boxes).map(place).collect(),
            routes: chains.iter().map(route).collect(),
            size: (width + 2.0 * GAP.0, self.rows.len() as f64 * step),
        }
    }
}
