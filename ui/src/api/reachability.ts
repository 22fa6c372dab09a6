/** Whether the server answers at all, by the last call: one fact for the whole page. */
import { createStore } from "../lib/store";

export const isUnreachable = createStore(false);
