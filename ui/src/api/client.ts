/** Calls of the API, typed by its OpenAPI document. A failure is a value, not an exception. */
import { isUnreachable } from "./reachability";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
export type EntityId = Schemas["EntityId"];
export type Method = "get" | "put" | "post" | "delete";

/** The paths that have a method. */
export type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P] extends { [K in M]: object } ? P : never;
}[keyof paths];

type Operation<M extends Method, P extends PathOf<M>> = paths[P] extends { [K in M]: infer O }
  ? O
  : never;
type Parameters<O> = O extends { parameters: infer Q } ? Q : never;
type Part<O, K extends "path" | "query"> =
  Parameters<O> extends { [N in K]?: infer V } ? Exclude<V, undefined> : never;
type BodyOf<R> = [R] extends [never]
  ? never
  : R extends { content: { "application/json": infer B } }
    ? B
    : never;
/** The body is required here even where the API has defaults. */
type Body<O> = O extends { requestBody?: infer R } ? BodyOf<Exclude<R, undefined>> : never;
type JsonOf<R> = R extends { content: { "application/json": infer V } } ? V : never;
type Success<O> = O extends { responses: infer R }
  ? JsonOf<R[Extract<keyof R, 200 | 201 | 202>]>
  : never;

type Need<K extends string, V> = [V] extends [never] ? object : { [N in K]: V };
type May<K extends string, V> = [V] extends [never] ? object : { [N in K]?: V };

/** The parameters of a call: the variables of its path, its query, its body. */
export type Ask<M extends Method, P extends PathOf<M>> = Need<
  "path",
  Part<Operation<M, P>, "path">
> &
  May<"query", Part<Operation<M, P>, "query">> &
  Need<"body", Body<Operation<M, P>>>;

/** The answer of a call that succeeded. */
export type AnswerOf<M extends Method, P extends PathOf<M>> = Success<Operation<M, P>>;

/** Why a call failed: the message of the server, or of the page when no answer came. */
export interface Problem {
  readonly status: number;
  readonly message: string;
}

export type Answer<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: Problem };

interface Loose {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
}

/** The message when no answer came. */
export const NO_ANSWER =
  "The server does not answer. Check that it runs; this page retries by itself.";

const KEY = "penstock.key";
const keyListeners = new Set<() => void>();

/** The key that was entered in this tab, if one was. */
export function key(): string | null {
  return sessionStorage.getItem(KEY);
}

/** Keep a key for this tab only, or remove it with null. */
export function setKey(value: string | null): void {
  if (value) sessionStorage.setItem(KEY, value);
  else sessionStorage.removeItem(KEY);
}

/** Call the listener when the server asks for a key or refuses the current one. */
export function onKeyNeeded(listener: () => void): () => void {
  keyListeners.add(listener);
  return () => keyListeners.delete(listener);
}

export function headers(): Record<string, string> {
  const token = key();
  return token ? { authorization: `Bearer ${token}` } : {};
}

/** Fill in the address of a call; each variable is encoded as one segment. */
export function urlOf(template: string, ask: Loose): string {
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(ask.path?.[name] ?? ""),
  );
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(ask.query ?? {})) {
    if (Array.isArray(value)) for (const each of value) query.append(name, String(each));
    else if (value !== undefined && value !== null) query.set(name, String(value));
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

/** Make a call. It never throws. */
export async function call<M extends Method, P extends PathOf<M>>(
  method: M,
  path: P,
  ask: Ask<M, P>,
): Promise<Answer<AnswerOf<M, P>>> {
  const loose = ask as Loose;
  return send(method, urlOf(path, loose), loose.body);
}

/** A browser resolves a segment of dots, so the call would go to another path. */
const DOTS = /^[^?]*\/\.{1,2}(?:[/?]|$)/;

export async function send<T>(method: string, url: string, body?: unknown): Promise<Answer<T>> {
  if (DOTS.test(url))
    return failed(
      422,
      "A name cannot be . or .., which an address resolves as a folder. Use another name.",
    );
  const sent = key();
  const init: RequestInit = { method: method.toUpperCase(), headers: headers() };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { ...headers(), "content-type": "application/json" };
  }
  let response: Response;
  let text: string;
  try {
    response = await fetch(url, init);
    text = await response.text();
  } catch {
    isUnreachable.set(true);
    return failed(0, NO_ANSWER);
  }
  isUnreachable.set(false);
  if (response.ok) {
    const value = text ? parseJson<T>(text) : ({} as T);
    if (value === undefined)
      return failed(
        response.status,
        `The answer from ${url} is not of this API. Check whether a gateway in front of the server asks you to sign in.`,
      );
    return { ok: true, value };
  }
  // Another key may have been entered since this one was sent.
  if (response.status === 401 && sent === key()) for (const listener of keyListeners) listener();
  return failed(
    response.status,
    messageOf(text) ?? `The server answered ${response.status} to ${method} ${url}.`,
  );
}

function failed(status: number, message: string): Answer<never> {
  return { ok: false, problem: { status, message } };
}

function messageOf(text: string): string | null {
  const message = parseJson<Partial<Schemas["Refusal"]> | null>(text)?.message;
  return typeof message === "string" && message ? message : null;
}

function parseJson<T>(text: string): T | undefined {
  try {
    return JSON.parse(text) as T;
  } catch {
    return undefined;
  }
}
