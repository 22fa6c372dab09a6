/** Zoom buttons, and the movements of the view: to the whole, to the root, to what was found. */
import { getViewportForBounds, useReactFlow, useStore } from "@xyflow/react";
import { type RefObject, useCallback, useEffect } from "react";
import { Button } from "../../kit/Button";
import type { Places, Sized } from "./layout";
import { HEAD, WIDTH } from "./nodes";
import { boxAround } from "./window";

export const ZOOM = { least: 0.02, most: 2 };
const FITTED = 1.1;
const PADDING = 0.05;
const READABLE = 0.6;
const READABLE_AROUND = 0.85;
const FOUND_MAX = 50;

interface Props {
  sized: readonly Sized[];
  places: Places | null;
  root: string;
  found: ReadonlySet<string>;
  /** The root around which somebody has begun to look; whoever has is left where they are. */
  mover: RefObject<string | null>;
  onSteered: () => void;
}

export function Steering({ sized, places, root, found, mover, onSteered }: Props) {
  const flow = useReactFlow();
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  const fit = useCallback(
    (nodes: readonly Sized[], options?: { duration: number }) => {
      const box = places && boxAround(nodes, places);
      if (box && width && height) void flow.setViewport(getViewportForBounds(box, width, height, ZOOM.least, FITTED, PADDING), options);
    },
    [flow, places, width, height],
  );
  const isReady = width > 0 && places !== null;
  useEffect(() => {
    if (!isReady || mover.current === root) return;
    fit(sized);
    const at = places.get(root);
    // What is too small to be read is shown around its root instead.
    if (at && flow.getZoom() < READABLE) void flow.setCenter(at.x + WIDTH / 2, at.y + HEAD / 2, { zoom: READABLE_AROUND });
    onSteered();
    // A window that changes its size moves nothing.
  }, [isReady, places, root]);
  useEffect(() => {
    if (isReady && found.size > 0) fit(sized.filter((node) => found.has(node.id)).slice(0, FOUND_MAX), { duration: 250 });
  }, [found, places, isReady]);
  return (
    <div className="canvas-buttons">
      <Button icon="plus" aria-label="zoom in" onClick={() => void flow.zoomIn()} />
      <Button icon="minus" aria-label="zoom out" onClick={() => void flow.zoomOut()} />
      <Button
        icon="focus"
        aria-label="show all"
        onClick={() => {
          mover.current = root;
          fit(sized);
        }}
      />
    </div>
  );
}
