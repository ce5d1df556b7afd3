/** The parameter objects that a binding names (admission/plugin/policy/generic CollectParams). */

import { apiVersionOf, parseApiVersion } from '@coracle/apimachinery/meta/gvk';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { labelHint } from '@coracle/apimachinery/selector/label-hint';
import { fromLabelSelectorObject, matchesLabels } from '@coracle/apimachinery/selector/label-selector';
import { type ResourceInfo, storagePrefix } from '@coracle/apimachinery/types/resource';
import type { ObjectStore, StoredObject } from '../../cache/object-store.ts';
import { kindText, type ServedResources, viewStored } from '../matching/served-kinds.ts';
import type { ParamKind, ParamRef } from './policy-types.ts';

export type Param = Readonly<UnstructuredObject> | null;

/** What is wrong with a policy or binding as it stands now; failurePolicy says what that means. */
export class ConfigurationError extends Error {}

/** The resource of a policy's parameters; undefined when it takes none. Throws ConfigurationError when nobody serves it. */
export function paramResource(resources: ServedResources, of: ParamKind | undefined): ResourceInfo | undefined {
  if (!of) return undefined;
  const { apiVersion, kind } = of;
  const found = resources.all().find((info) => info.kind === kind && apiVersionOf(info) === apiVersion);
  if (found) return found;
  const text = kindText({ ...parseApiVersion(apiVersion), kind });
  throw new ConfigurationError(`failed to find resource referenced by paramKind: '${text}'`);
}

/**
 * One evaluation for each entry: `null` when the policy takes no parameters or the binding gives none, nothing when
 * there are none and that is allowed. Throws ConfigurationError.
 */
export function collectParams(
  store: Pick<ObjectStore, 'get' | 'list'>,
  {
    info,
    ref,
    namespace,
  }: { readonly info: ResourceInfo | undefined; readonly ref: ParamRef | undefined; readonly namespace: string },
): readonly Param[] {
  if (!info || !ref) return NO_PARAMS;
  if (!info.namespaced && ref.namespace) {
    throw new ConfigurationError('paramRef.namespace must not be provided for a cluster-scoped `paramKind`');
  }
  const where = info.namespaced ? ref.namespace || namespace : '';
  if (info.namespaced && where === '') {
    throw new ConfigurationError(
      'cannot use namespaced paramRef in policy binding that matches cluster-scoped resources',
    );
  }
  const prefix = storagePrefix(info);
  const params = ref.name
    ? [store.get({ prefix, namespace: where, name: ref.name })].filter((one) => one !== undefined)
    : selected(store, { prefix, namespace: where, ref });
  if (params.length === 0 && ref.parameterNotFoundAction === 'Deny') {
    throw new ConfigurationError('no params found for policy binding with `Deny` parameterNotFoundAction');
  }
  return params.map(({ object }) => viewStored(info, object));
}

const NO_PARAMS: readonly Param[] = [null];

function selected(
  store: Pick<ObjectStore, 'list'>,
  { prefix, namespace, ref }: { readonly prefix: string; readonly namespace: string; readonly ref: ParamRef },
) {
  if (!ref.selector) throw new ConfigurationError('one of name or selector must be provided');
  const selector = fromLabelSelectorObject(ref.selector);
  // Most objects of the namespace are no params, and are not parsed to find that out.
  const hint = labelHint(selector);
  const match = (stored: StoredObject): boolean =>
    (stored.isParsed || hint === undefined || hint(stored.bytes)) &&
    matchesLabels(selector, stored.object.metadata.labels);
  return store.list(prefix, { namespace, match }).items;
}
