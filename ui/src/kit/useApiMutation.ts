/** A change on the server: its result as a toast, its problem for the form that sent it. */
import { useMutation } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import type { Answer, Problem } from "../api/client";
import { refetchAll } from "../api/queries";
import { problemText } from "./MutationError";
import { toast } from "./Toasts";

interface Options<T, I> {
  readonly send: (input: I) => Promise<Answer<T>>;
  /** The text of the toast after success. */
  readonly done: string | ((value: T, input: I) => string);
}

/** Callbacks that are passed to `mutate` are not called once the component is gone. */
export function useApiMutation<T, I = void>({ send, done }: Options<T, I>) {
  const isMounted = useIsMounted();
  return useMutation<T, Problem, I>({
    mutationFn: async (input) => {
      const answer = await send(input);
      if (!answer.ok) throw answer.problem;
      return answer.value;
    },
    onSuccess: (value, input) => toast(typeof done === "string" ? done : done(value, input)),
    onError: (problem) => {
      // The dialog that would show it was closed; the call cannot be taken back.
      if (!isMounted.current) toast(problemText(problem), "bad");
    },
    // Also after a refusal: another person may have made the change.
    onSettled: refetchAll,
  });
}

function useIsMounted() {
  const isMounted = useRef(true);
  useEffect(() => {
    isMounted.current = true;
    return () => {
      isMounted.current = false;
    };
  }, []);
  return isMounted;
}
