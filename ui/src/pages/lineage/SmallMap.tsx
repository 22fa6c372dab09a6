/** A map of a large graph with the part in view; a click moves the view. */
import { useReactFlow, useStore } from "@xyflow/react";
import { useLayoutEffect, useMemo, useRef } from "react";
import { clearCanvas, drawSpots, type Sketched, useTheme } from "./Sketch";
import { boxAround } from "./window";

const WIDTH = 200;
const HEIGHT = 130;

export function SmallMap({ of: sketched, onMove }: { of: Sketched; onMove: () => void }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const flow = useReactFlow();
  const [x, y, zoom] = useStore((state) => state.transform);
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  const theme = useTheme();
  const box = useMemo(() => boxAround(sketched.spots, sketched.places), [sketched]);
  const scale = box ? Math.min(WIDTH / box.width, HEIGHT / box.height) * 0.94 : 1;
  const left = box ? WIDTH / 2 - (box.x + box.width / 2) * scale : 0;
  const top = box ? HEIGHT / 2 - (box.y + box.height / 2) * scale : 0;
  useLayoutEffect(() => {
    const brush = clearCanvas(canvas, WIDTH, HEIGHT);
    if (!brush) return;
    brush.translate(left, top);
    brush.scale(scale, scale);
    drawSpots(brush, sketched);
  }, [sketched, left, top, scale, theme]);
  const frame = {
    left: left + (-x / zoom) * scale,
    top: top + (-y / zoom) * scale,
    width: (width / zoom) * scale,
    height: (height / zoom) * scale,
  };
  return (
    <div
      className="small-map"
      role="img"
      aria-label="map of the graph"
      onClick={(event) => {
        const view = event.currentTarget.getBoundingClientRect();
        onMove();
        void flow.setCenter(
          (event.clientX - view.left - left) / scale,
          (event.clientY - view.top - top) / scale,
          { zoom },
        );
      }}
    >
      <canvas ref={canvas} />
      <i style={frame} />
    </div>
  );
}
