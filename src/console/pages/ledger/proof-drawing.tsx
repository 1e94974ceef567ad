import type { JSX } from "preact";
import type { EntryCheck, ProofNode } from "./check-entry.ts";
import { rangeText, shortHash } from "./hash-text.ts";

/* In units of the drawing, which are pixels if it is not scaled down. */
const WIDTH = 340;
const BOX = { width: 156, height: 44 } as const;
const LEVEL = 78;
const EDGE = 2;
const LEFT = EDGE;
const RIGHT = WIDTH - BOX.width - EDGE;
const MIDDLE = (WIDTH - BOX.width) / 2;

/** A box and its position. */
interface Box {
  readonly node: ProofNode;
  readonly x: number;
  readonly y: number;
  readonly kind: "own" | "sibling";
  readonly name: string;
}

/**
 * The path from the leaf to the root: on each level our node and its sibling, and above them their common hash. Ticks
 * appear only if the path ends at the signed root; otherwise no hash is known to be right.
 */
export function ProofDrawing({ check }: { readonly check: EntryCheck }): JSX.Element {
  const { steps, root, isRootSigned } = check;
  if (root === null)
    return <p class="problem">The server’s hashes form no path to the root, so there is nothing to draw.</p>;
  const height = steps.length * LEVEL + BOX.height + 2 * EDGE;
  const yOf = (level: number) => EDGE + (steps.length - level) * LEVEL;
  const boxes: Box[] = steps.flatMap(({ own, sibling, side }, level) => [
    {
      node: own,
      x: side === "left" ? RIGHT : LEFT,
      y: yOf(level),
      kind: "own",
      name: level === 0 ? "Leaf" : "Computed here",
    },
    {
      node: sibling,
      x: side === "left" ? LEFT : RIGHT,
      y: yOf(level),
      kind: "sibling",
      name: "From the server",
    },
  ]);
  const top: Box = {
    node: root,
    x: MIDDLE,
    y: yOf(steps.length),
    kind: "own",
    name: steps.length === 0 ? "Leaf and root" : "Root",
  };
  const parents = [...boxes.filter(({ kind }) => kind === "own").slice(1), top];
  return (
    <svg
      class="proof-drawing"
      viewBox={`0 0 ${WIDTH} ${height}`}
      role="img"
      aria-label={`The path from the leaf to the root in ${steps.length} steps. The table contains every hash.`}
    >
      {boxes.map((box, at) => {
        const parent = parents[Math.floor(at / 2)];
        return parent && <Line key={`line ${box.kind} ${box.y}`} from={box} to={parent} />;
      })}
      {[...boxes, top].map((box) => (
        <NodeBox
          key={`${box.kind} ${box.y}`}
          box={box}
          state={box.kind === "sibling" ? "given" : isRootSigned ? "fits" : box === top ? "broken" : "open"}
        />
      ))}
    </svg>
  );
}

function Line({ from, to }: { readonly from: Box; readonly to: Box }): JSX.Element {
  const [x, bottom] = [from.x + BOX.width / 2, to.y + BOX.height];
  const middle = (from.y + bottom) / 2;
  const path = `M${x} ${from.y}V${middle}H${to.x + BOX.width / 2}V${bottom}`;
  return <path class={`proof-line proof-line-${from.kind}`} d={path} />;
}

function NodeBox({
  box: { node, x, y, kind, name },
  state,
}: {
  readonly box: Box;
  readonly state: "fits" | "broken" | "open" | "given";
}): JSX.Element {
  return (
    <g class={`proof-node proof-node-${kind}`} data-state={state}>
      <title>{`${name}, of ${rangeText(node.range)}: ${node.hash.toHex()}`}</title>
      <rect x={x} y={y} width={BOX.width} height={BOX.height} rx="6" />
      <text class="proof-hash" x={x + 10} y={y + 18}>
        {shortHash(node.hash)}
      </text>
      <text class="proof-range" x={x + 10} y={y + 35}>
        {rangeText(node.range)}
      </text>
      {state === "fits" && <path class="proof-tick" d={`M${x + 134} ${y + 13}l4 4 7-8`} />}
      {state === "broken" && <path class="proof-cross" d={`M${x + 135} ${y + 9}l9 9m0-9l-9 9`} />}
    </g>
  );
}
