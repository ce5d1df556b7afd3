/** What is allowed and looks like a mistake, reported once a write is found valid. */

import { goQuote } from '@coracle/apimachinery/meta/go-text';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { unqualifiedFinalizers } from '@coracle/apimachinery/meta/validate-object-meta';
import { updateStrategyOf } from '@coracle/apimachinery/types/strategy';
import type { WriteCall } from './write-contract.ts';

type Shown = Readonly<UnstructuredObject>;

/** Warnings of a create. */
export function warnAboutCreate({ info: { strategy }, warn }: Pick<WriteCall, 'info' | 'warn'>, object: Shown): void {
  for (const text of strategy.warningsOnCreate?.(object) ?? []) warn(text);
  if (strategy.custom) warnAboutFinalizers(object, [], warn);
}

/** Warnings of an update: of what came in with it. */
export function warnAboutUpdate(
  { info: { strategy }, subresource, warn }: Pick<WriteCall, 'info' | 'subresource' | 'warn'>,
  object: Shown,
  old: Shown,
): void {
  for (const text of updateStrategyOf(strategy, subresource).warningsOnUpdate?.(object, old) ?? []) warn(text);
  if (strategy.custom && subresource === '') warnAboutFinalizers(object, old.metadata.finalizers ?? [], warn);
}

function warnAboutFinalizers(object: Shown, before: readonly string[], warn: WriteCall['warn']): void {
  for (const name of [...new Set(unqualifiedFinalizers(object.metadata))].sort()) {
    if (before.includes(name)) continue;
    // Upstream asks for the path only when there is a domain to put it behind.
    const wanted = name.includes('.') ? 'finalizer name including a path (/)' : 'finalizer name';
    warn(
      `metadata.finalizers: ${goQuote(name)}: prefer a domain-qualified ${wanted} to avoid accidental conflicts with other finalizer writers`,
    );
  }
}
