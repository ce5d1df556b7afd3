/** What is allowed and looks like a mistake, reported once a write is found valid. */

import { goQuote } from '@coracle/apimachinery/meta/go-text';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { unqualifiedFinalizers } from '@coracle/apimachinery/meta/validate-object-meta';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { updateStrategyOf } from '@coracle/apimachinery/types/strategy';
import { type DeleteOptions, namesPolicy } from './graceful-deletion.ts';
import type { WriteCall } from './write-contract.ts';

type Warn = (text: string) => void;
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

/** Warnings of a delete, of one object or a collection; also of what is not found. */
export function warnAboutDelete({ strategy }: ResourceInfo, options: DeleteOptions, warn: Warn): void {
  const text = strategy.warningOnDelete;
  if (text !== undefined && !namesPolicy(options)) warn(text);
}

function warnAboutFinalizers(object: Shown, before: readonly string[], warn: Warn): void {
  for (const name of [...new Set(unqualifiedFinalizers(object.metadata))].sort()) {
    if (before.includes(name)) continue;
    // Upstream asks for the path only when there is a domain to put it behind.
    const wanted = name.includes('.') ? 'finalizer name including a path (/)' : 'finalizer name';
    warn(
      `metadata.finalizers: ${goQuote(name)}: prefer a domain-qualified ${wanted} to avoid accidental conflicts with other finalizer writers`,
    );
  }
}
