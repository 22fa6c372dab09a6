/** The zoom buttons, and the moves of the view: to the graph, its root, the search results. */
import { getViewportForBounds, useReactFlow, useStore } from "@xyflow/react";
import { type RefObject, useEffect, useEffectEvent } from "react";
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
  matches: ReadonlySet<string>;
  /** The root of the graph that the user has moved; its view stays as it is. */
  mover: RefObject<string | null>;
  onSteered: () => void;
}

export function ViewControls({ sized, places, root, matches, mover, onSteered }: Props) {
  const flow = useReactFlow();
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  function fit(nodes: readonly Sized[], options?: { duration: number }): void {
    const box = places && boxAround(nodes, places);
    if (!box || !width || !height) return;
    const viewport = getViewportForBounds(box, width, height, ZOOM.least, FITTED, PADDING);
    void flow.setViewport(viewport, options);
  }
  const isReady = width > 0 && places !== null;
  const showRoot = useEffectEvent(() => {
    if (!places || mover.current === root) return;
    fit(sized);
    const at = places.get(root);
    // A graph that is too large to read is shown around its root.
    if (at && flow.getZoom() < READABLE)
      void flow.setCenter(at.x + WIDTH / 2, at.y + HEAD / 2, { zoom: READABLE_AROUND });
    onSteered();
  });
  const showFound = useEffectEvent(() => {
    const nodes = sized.filter((node) => matches.has(node.id)).slice(0, FOUND_MAX);
    if (nodes.length > 0) fit(nodes, { duration: 250 });
  });
  // A change of the window's size moves nothing.
  useEffect(() => {
    if (isReady) showRoot();
  }, [isReady, places, root]);
  useEffect(() => {
    if (isReady) showFound();
  }, [isReady, places, matches]);

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
