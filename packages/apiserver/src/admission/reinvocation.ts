/**
 * What the second mutating pass must know of the first (admission/reinvocation.go). A webhook or policy that changed the
 * object asks for that pass; in it every built-in plug-in runs again, but only those webhooks and policies that allow it
 * (`IfNeeded`) and whose output somebody has changed since.
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';

export class Reinvocation {
  /** Somebody changed the object: another pass is wanted. */
  wanted = false;
  /** That pass is running. */
  again = false;
  readonly #callers = new Map<string, Callers>();

  /** The record of one plug-in's callees. */
  of(plugin: string): Callers {
    return getOrInsert(this.#callers, plugin, () => new Callers());
  }
}

/** The callees of one plug-in (webhooks, or policies with their binding and parameter), by a key of their own. */
export class Callers {
  readonly #invoked = new Set<string>();
  readonly #due = new Set<string>();
  #lastOutput: unknown;

  /** True when the object is not as this plug-in left it. */
  outputChanged(object: unknown): boolean {
    return !deepEqual(this.#lastOutput, object);
  }

  keepOutput(object: unknown): void {
    this.#lastOutput = cloneJson(object);
  }

  /** Whoever was called before and allows it has to see the object again. */
  requirePrevious(): void {
    for (const key of this.#invoked) this.#due.add(key);
    this.#invoked.clear();
  }

  addReinvocable(key: string): void {
    this.#invoked.add(key);
  }

  isDue(key: string): boolean {
    return this.#due.has(key);
  }
}

/** The record of the request, made when it is first asked for. */
export function reinvocationOf(attributes: { reinvocation: Reinvocation | undefined }): Reinvocation {
  attributes.reinvocation ??= new Reinvocation();
  return attributes.reinvocation;
}
