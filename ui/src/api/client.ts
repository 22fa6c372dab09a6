/** Calls of the API, typed by its own OpenAPI document. An error is a value that says what happened. */
import { noteAway } from "./away";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
export type Method = "get" | "put" | "post" | "delete";

/** The paths that can be called with a method. */
export type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P] extends { [K in M]: object } ? P : never;
}[keyof paths];

type Operation<M extends Method, P extends PathOf<M>> = paths[P] extends { [K in M]: infer O } ? O : never;
type Parameters<O> = O extends { parameters: infer Q } ? Q : never;
type Part<O, K extends "path" | "query"> = Parameters<O> extends { [N in K]?: infer V } ? Exclude<V, undefined> : never;
type BodyOf<R> = [R] extends [never] ? never : R extends { content: { "application/json": infer B } } ? B : never;
/** Also of a call whose body may be left out: the page always says what it wants. */
type Body<O> = O extends { requestBody?: infer R } ? BodyOf<Exclude<R, undefined>> : never;
type JsonOf<R> = R extends { content: { "application/json": infer V } } ? V : never;
type Success<O> = O extends { responses: infer R } ? JsonOf<R[Extract<keyof R, 200 | 201 | 202>]> : never;

type Need<K extends string, V> = [V] extends [never] ? object : { [N in K]: V };
type May<K extends string, V> = [V] extends [never] ? object : { [N in K]?: V };

/** What a call must be told: the variables of its path, its query, its body. */
export type Ask<M extends Method, P extends PathOf<M>> = Need<"path", Part<Operation<M, P>, "path">> &
  May<"query", Part<Operation<M, P>, "query">> &
  Need<"body", Body<Operation<M, P>>>;

/** What a call answers when it succeeds. */
export type AnswerOf<M extends Method, P extends PathOf<M>> = Success<Operation<M, P>>;

/** Why a call failed: the server's own words, or ours when it could not be reached. */
export interface Problem {
  readonly status: number;
  readonly message: string;
}

export type Answer<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: Problem };

interface Loose {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
}

/** What is said when the server cannot be reached. */
export const SILENT = "The server does not answer. Is it running? This page tries again by itself.";

const KEY = "penstock.key";
const wanted = new Set<() => void>();

/** The key that was entered in this tab, if one was. */
export function key(): string | null {
  return sessionStorage.getItem(KEY);
}

/** Keeps a key for this tab only, or forgets it. */
export function setKey(value: string | null): void {
  if (value) sessionStorage.setItem(KEY, value);
  else sessionStorage.removeItem(KEY);
}

/** Is told when the server asks for a key, or refuses the one that is held. */
export function onKeyWanted(listener: () => void): () => void {
  wanted.add(listener);
  return () => wanted.delete(listener);
}

export function headers(): Record<string, string> {
  const held = key();
  return held ? { authorization: `Bearer ${held}` } : {};
}

/** The address of a call; names are encoded whole. */
export function urlOf(template: string, ask: Loose): string {
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(ask.path?.[name] ?? ""));
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(ask.query ?? {})) {
    if (Array.isArray(value)) for (const each of value) query.append(name, String(each));
    else if (value !== undefined && value !== null) query.set(name, String(value));
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

/** Makes a call. It never throws, unless it is aborted. */
export async function call<M extends Method, P extends PathOf<M>>(
  method: M,
  path: P,
  ask: Ask<M, P>,
  signal?: AbortSignal,
): Promise<Answer<AnswerOf<M, P>>> {
  const loose = ask as Loose;
  return send(method, urlOf(path, loose), loose.body, signal);
}

/** A path with a segment of dots only, which a browser makes the path of something else. */
const DOTS = /^[^?]*\/\.{1,2}(?:[/?]|$)/;

export async function send<T>(
  method: string,
  url: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<Answer<T>> {
  if (DOTS.test(url)) return failed(422, "No name is . or .., which mean a folder in an address. Give another name.");
  const sent = key();
  const init: RequestInit = { method: method.toUpperCase(), headers: headers() };
  if (signal) init.signal = signal;
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { ...headers(), "content-type": "application/json" };
  }
  let response: Response;
  let text: string;
  try {
    response = await fetch(url, init);
    text = await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    noteAway(true);
    return failed(0, SILENT);
  }
  noteAway(false);
  if (response.ok) {
    const value = text ? parsed<T>(text) : ({} as T);
    if (value === undefined) return failed(response.status, `What answers at ${url} is not this server. Is a gateway before it that wants you to sign in?`);
    return { ok: true, value };
  }
  // Another key may have been entered since; what is said of this one no longer matters.
  if (response.status === 401 && sent === key()) for (const listener of wanted) listener();
  return failed(response.status, wordsOf(text) ?? `The server answered ${response.status} to ${method} ${url}.`);
}

function failed(status: number, message: string): Answer<never> {
  return { ok: false, problem: { status, message } };
}

function wordsOf(text: string): string | null {
  const found = parsed<Partial<Schemas["Refusal"]> | null>(text)?.message;
  return typeof found === "string" && found ? found : null;
}

function parsed<T>(text: string): T | undefined {
  try {
    return JSON.parse(text) as T;
  } catch {
    return undefined;
  }
}
