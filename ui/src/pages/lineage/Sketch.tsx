/** A large graph on a canvas: every edge, and from afar every node, in one stroke for each colour. */
import { useStore } from "@xyflow/react";
import { type RefObject, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { onTheme } from "../../app/theme";
import type { Link } from "./graph";
import type { Places, Sized } from "./layout";

/** A node as it is drawn from afar: the name of its colour, and whether it stands back. */
export interface Spot extends Sized {
  readonly colour: string;
  readonly isDim: boolean;
}

export interface Sketched {
  readonly spots: readonly Spot[];
  readonly links: readonly Link[];
  readonly places: Places;
  /** The nodes whose edges stand out; null if none do. */
  readonly way: ReadonlySet<string> | null;
}

export function Sketch({ of: sketched, chosen, isFar }: { of: Sketched; chosen: string | null; isFar: boolean }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const transform = useStore((state) => state.transform);
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  const theme = useTheme();
  const lines = useMemo(() => linesOf(sketched), [sketched]);
  useLayoutEffect(() => {
    const brush = begin(canvas, width, height);
    if (!brush) return;
    const [x, y, zoom] = transform;
    const seen = { left: -x / zoom, top: -y / zoom, right: (width - x) / zoom, bottom: (height - y) / zoom };
    brush.translate(x, y);
    brush.scale(zoom, zoom);
    drawLines(brush, lines, seen, zoom);
    if (isFar) {
      drawSpots(brush, sketched);
      drawChosen(brush, sketched, chosen, zoom);
    }
  }, [sketched, lines, transform, width, height, isFar, isFar ? chosen : null, theme]);
  return <canvas ref={canvas} className="sketch" aria-hidden="true" />;
}

/** Changes with the theme, so that what is drawn with its colours is drawn anew. */
export function useTheme(): number {
  const [theme, setTheme] = useState(0);
  useEffect(() => onTheme(() => setTheme((before) => before + 1)), []);
  return theme;
}

/** An empty canvas of this size, sharp on every screen. */
export function begin(canvas: RefObject<HTMLCanvasElement | null>, width: number, height: number): CanvasRenderingContext2D | null {
  const view = canvas.current;
  if (!view || !width || !height) return null;
  const scale = window.devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
  if (view.width !== wide || view.height !== high) {
    view.width = wide;
    view.height = high;
    view.style.width = `${width}px`;
    view.style.height = `${height}px`;
  }
  const brush = view.getContext("2d");
  brush?.setTransform(scale, 0, 0, scale, 0, 0);
  brush?.clearRect(0, 0, width, height);
  return brush;
}

export function drawSpots(brush: CanvasRenderingContext2D, { spots, places }: Sketched): void {
  const style = getComputedStyle(brush.canvas);
  const colours = new Map([...new Set(spots.map((spot) => spot.colour))].map((name) => [name, style.getPropertyValue(name)]));
  for (const { id, width, height, colour, isDim } of spots) {
    const at = places.get(id);
    if (!at) continue;
    brush.fillStyle = colours.get(colour) ?? "";
    brush.globalAlpha = isDim ? 0.25 : 1;
    brush.fillRect(at.x, at.y, width, height);
  }
  brush.globalAlpha = 1;
}

function drawChosen(brush: CanvasRenderingContext2D, { spots, places }: Sketched, chosen: string | null, zoom: number): void {
  const at = chosen === null ? undefined : places.get(chosen);
  const spot = spots.find(({ id }) => id === chosen);
  if (!at || !spot) return;
  brush.strokeStyle = getComputedStyle(brush.canvas).getPropertyValue("--accent");
  brush.lineWidth = 3 / zoom;
  brush.strokeRect(at.x, at.y, spot.width, spot.height);
}

interface Lines {
  readonly plain: readonly number[];
  readonly way: readonly number[];
}

/** The ends of every edge, four numbers each. */
function linesOf({ spots, links, places, way }: Sketched): Lines {
  const sizes = new Map(spots.map((spot) => [spot.id, spot]));
  const lines = { plain: [] as number[], way: [] as number[] };
  for (const { from, to } of links) {
    const [begin, end, of, into] = [places.get(from), places.get(to), sizes.get(from), sizes.get(to)];
    if (!begin || !end || !of || !into) continue;
    const isOn = way?.has(from) && way.has(to);
    lines[isOn ? "way" : "plain"].push(begin.x + of.width, begin.y + of.height / 2, end.x, end.y + into.height / 2);
  }
  return lines;
}

function drawLines(brush: CanvasRenderingContext2D, lines: Lines, seen: { left: number; top: number; right: number; bottom: number }, zoom: number): void {
  const style = getComputedStyle(brush.canvas);
  const kinds = [
    { ends: lines.plain, colour: "--line-strong", thick: 1.2, alpha: lines.way.length ? 0.4 : 1 },
    { ends: lines.way, colour: "--accent", thick: 2, alpha: 1 },
  ];
  for (const { ends, colour, thick, alpha } of kinds) {
    brush.strokeStyle = style.getPropertyValue(colour);
    brush.lineWidth = zoom < 0.3 ? 0.5 / zoom : thick;
    brush.globalAlpha = alpha;
    brush.beginPath();
    for (let at = 0; at < ends.length; at += 4) {
      const [x1, y1, x2, y2] = [ends[at] ?? 0, ends[at + 1] ?? 0, ends[at + 2] ?? 0, ends[at + 3] ?? 0];
      if (Math.max(x1, x2) < seen.left || Math.min(x1, x2) > seen.right || Math.max(y1, y2) < seen.top || Math.min(y1, y2) > seen.bottom) continue;
      brush.moveTo(x1, y1);
      if (zoom < 0.3) brush.lineTo(x2, y2);
      else brush.bezierCurveTo((x1 + x2) / 2, y1, (x1 + x2) / 2, y2, x2, y2);
    }
    brush.stroke();
  }
  brush.globalAlpha = 1;
}
