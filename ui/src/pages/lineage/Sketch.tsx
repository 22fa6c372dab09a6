/** A large graph on a canvas: every edge, and at low zoom every node, one stroke per color. */
import { useStore } from "@xyflow/react";
import { type RefObject, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { onTheme } from "../../app/theme";
import type { Link } from "./graph";
import type { Places, Sized } from "./layout";

/** A node at low zoom: the name of its color, and whether it is dimmed. */
export interface Spot extends Sized {
  readonly color: string;
  readonly isDim: boolean;
}

export interface Sketched {
  readonly spots: readonly Spot[];
  readonly links: readonly Link[];
  readonly places: Places;
  /** The nodes whose edges are highlighted; null for none. */
  readonly way: ReadonlySet<string> | null;
}

export function Sketch({
  of: sketched,
  chosen,
  isFar,
}: {
  of: Sketched;
  chosen: string | null;
  isFar: boolean;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const transform = useStore((state) => state.transform);
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  const theme = useTheme();
  const marked = isFar ? chosen : null;
  const lines = useMemo(() => linesOf(sketched), [sketched]);
  useLayoutEffect(() => {
    const brush = clearCanvas(canvas, width, height);
    if (!brush) return;
    const [x, y, zoom] = transform;
    const area = {
      left: -x / zoom,
      top: -y / zoom,
      right: (width - x) / zoom,
      bottom: (height - y) / zoom,
    };
    brush.translate(x, y);
    brush.scale(zoom, zoom);
    drawLines(brush, lines, area, zoom);
    if (isFar) {
      drawSpots(brush, sketched);
      drawChosen(brush, sketched, marked, zoom);
    }
  }, [sketched, lines, transform, width, height, isFar, marked, theme]);
  return <canvas ref={canvas} className="sketch" aria-hidden="true" />;
}

/** A number that changes with the theme, to draw a canvas again. */
export function useTheme(): number {
  const [theme, setTheme] = useState(0);
  useEffect(() => onTheme(() => setTheme((before) => before + 1)), []);
  return theme;
}

/** Clear a canvas and set its size, at the resolution of the screen. */
export function clearCanvas(
  canvas: RefObject<HTMLCanvasElement | null>,
  width: number,
  height: number,
): CanvasRenderingContext2D | null {
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
  const colors = new Map(
    [...new Set(spots.map((spot) => spot.color))].map((name) => [
      name,
      style.getPropertyValue(name),
    ]),
  );
  for (const { id, width, height, color, isDim } of spots) {
    const at = places.get(id);
    if (!at) continue;
    brush.fillStyle = colors.get(color) ?? "";
    brush.globalAlpha = isDim ? 0.25 : 1;
    brush.fillRect(at.x, at.y, width, height);
  }
  brush.globalAlpha = 1;
}

function drawChosen(
  brush: CanvasRenderingContext2D,
  { spots, places }: Sketched,
  chosen: string | null,
  zoom: number,
): void {
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

/** List the ends of every edge as four numbers. */
function linesOf({ spots, links, places, way }: Sketched): Lines {
  const sizes = new Map(spots.map((spot) => [spot.id, spot]));
  const lines = { plain: [] as number[], way: [] as number[] };
  for (const { from, to } of links) {
    const [begin, end, of, into] = [
      places.get(from),
      places.get(to),
      sizes.get(from),
      sizes.get(to),
    ];
    if (!begin || !end || !of || !into) continue;
    const isOn = way?.has(from) && way.has(to);
    lines[isOn ? "way" : "plain"].push(
      begin.x + of.width,
      begin.y + of.height / 2,
      end.x,
      end.y + into.height / 2,
    );
  }
  return lines;
}

function drawLines(
  brush: CanvasRenderingContext2D,
  lines: Lines,
  area: { left: number; top: number; right: number; bottom: number },
  zoom: number,
): void {
  const style = getComputedStyle(brush.canvas);
  const kinds = [
    { ends: lines.plain, color: "--line-strong", thick: 1.2, alpha: lines.way.length ? 0.4 : 1 },
    { ends: lines.way, color: "--accent", thick: 2, alpha: 1 },
  ];
  for (const { ends, color, thick, alpha } of kinds) {
    brush.strokeStyle = style.getPropertyValue(color);
    brush.lineWidth = zoom < 0.3 ? 0.5 / zoom : thick;
    brush.globalAlpha = alpha;
    brush.beginPath();
    for (let at = 0; at < ends.length; at += 4) {
      const [x1, y1, x2, y2] = [
        ends[at] ?? 0,
        ends[at + 1] ?? 0,
        ends[at + 2] ?? 0,
        ends[at + 3] ?? 0,
      ];
      if (
        Math.max(x1, x2) < area.left ||
        Math.min(x1, x2) > area.right ||
        Math.max(y1, y2) < area.top ||
        Math.min(y1, y2) > area.bottom
      )
        continue;
      brush.moveTo(x1, y1);
      if (zoom < 0.3) brush.lineTo(x2, y2);
      else brush.bezierCurveTo((x1 + x2) / 2, y1, (x1 + x2) / 2, y2, x2, y2);
    }
    brush.stroke();
  }
  brush.globalAlpha = 1;
}
