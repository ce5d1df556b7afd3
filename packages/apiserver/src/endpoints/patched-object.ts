/** What a patch makes of an object, on whichever thread: merged, and read as what is sent whole is read. */
import { typingErrors, untypedConfig } from '@coracle/apimachinery/apply/typing-errors';
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { apiVersionOf } from '@coracle/apimachinery/meta/gvk';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { type ApiError, badRequest, conflict, invalid } from '@coracle/apimachinery/meta/status';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { dropsStatus } from '../registry/create.ts';
import { matchName, matchNamespace } from '../registry/object-metadata.ts';
import type { FieldChange, FieldManagement } from '../registry/write-contract.ts';
import { admitDocument, type BodyInput } from './body.ts';
import type { Exchange } from './exchange.ts';
import { applyPatch, type PatchDocument, patchProblems, shownPatch } from './patch-document.ts';
import type { WriteOptions } from './query.ts';

/** What patching asks of its request. */
export type PatchInput = Pick<BodyInput, 'warn'> &
  Pick<Exchange, 'namespace'> & { readonly info: Pick<Exchange['info'], 'name'> };

interface Patching {
  /** What the patched object is to be: the resource, or the kind of its subresource. */
  readonly info: ResourceInfo;
  readonly current: Readonly<UnstructuredObject>;
  readonly patch: PatchDocument;
  readonly options: Pick<WriteOptions, 'fieldValidation'>;
}

/** The object after a patch, read as what was sent is read. Throws ApiError 400 and 422. */
export function patchedObject(exchange: PatchInput, patching: Patching): UnstructuredObject {
  const { info, current, patch, options } = patching;
  const object = admitDocument(exchange, {
    parsed: { value: applyPatch(info, current, patch), duplicates: patch.duplicates, yaml: patch.yaml },
    info,
    fieldValidation: options.fieldValidation,
    dropStatus: false,
    ofPatch: patch.type === 'strategic' ? 'object' : 'document',
    patchProblems: () => patchProblems(patch),
    // The result itself was pruned on its way here.
    refuse: (problem) =>
      refusedPatch(
        info,
        problem,
        shownPatch(patch, () => applyPatch(info, current, patch)),
      ),
  });
  return matched(exchange, object);
}

function matched(exchange: PatchInput, object: UnstructuredObject): UnstructuredObject {
  matchNamespace(object.metadata, exchange.namespace);
  matchName(object.metadata, exchange.info.name);
  return object;
}

/** A result that is no object of its kind, without the sentence that a body of that kind would get. */
function refusedPatch(info: ResourceInfo, problem: string, shown: string): ApiError {
  const sentence = `${info.kind} in version "${info.version}" cannot be handled as a ${info.kind}: `;
  const detail = problem.startsWith(sentence) ? problem.slice(sentence.length) : problem;
  return invalid({ group: '', kind: '' }, '', [{ type: 'FieldValueInvalid', field: 'patch', value: shown, detail }]);
}

interface Applying extends Omit<FieldChange, 'live'> {
  readonly patch: PatchDocument;
  readonly options: Pick<WriteOptions, 'fieldValidation' | 'force'>;
  readonly fields: FieldManagement;
}

/** The live object with what is applied merged into it. A promise where a webhook converts. Throws ApiError 400, 409. */
export function applied(
  input: PatchInput,
  { patch, options, fields, ...change }: Applying & Pick<FieldChange, 'live'>,
): UnstructuredObject | Promise<UnstructuredObject> {
  const config = appliedConfig(input, { info: change.info, patch, options });
  const checked = (object: UnstructuredObject): UnstructuredObject => {
    const named = nameIn(patch);
    if (named.name) matchName(named, input.info.name);
    return object;
  };
  const merging = fields.apply(change, { config, force: options.force === true });
  return merging instanceof Promise ? merging.then(checked) : checked(merging);
}

/** What is applied as a new object. A promise where a webhook converts. Throws ApiError 400, 409. */
export function appliedAnew(
  input: PatchInput,
  { patch, options, fields, ...change }: Applying,
): UnstructuredObject | Promise<UnstructuredObject> {
  const { info } = change;
  const config = appliedConfig(input, { info, patch, options });
  const { uid } = config.metadata;
  if (uid) {
    const why = `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`;
    throw conflict(info, input.info.name, why);
  }
  const made = (object: UnstructuredObject): UnstructuredObject => {
    requireName(input, patch);
    if (dropsStatus(info)) delete object['status'];
    return object;
  };
  const merging = fields.apply({ ...change, live: undefined }, { config, force: options.force === true });
  return merging instanceof Promise ? merging.then(made) : made(merging);
}

/** The name that a configuration gives its object; empty when it gives none. */
export const nameIn = ({ value }: PatchDocument): Pick<UnstructuredObject['metadata'], 'name'> => {
  const name = (value as Partial<UnstructuredObject>).metadata?.name;
  return name === undefined ? {} : { name };
};

/** What is created has the name that the configuration gives it: the path alone names nothing (rest.BeforeCreate). */
function requireName({ info }: PatchInput, patch: PatchDocument): void {
  const named = nameIn(patch);
  if (!named.name) {
    throw badRequest(`the name of the object (${info.name} based on URL) was undeterminable: name must be provided`);
  }
  matchName(named, info.name);
}

/** A type as Go prints a GroupVersionKind that was read from an object. */
function gvkText({ apiVersion, kind }: Readonly<Record<string, unknown>>): string {
  const version = typeof apiVersion === 'string' && apiVersion.split('/').length <= 2 ? apiVersion : '';
  return `${version.includes('/') ? '' : '/'}${version}, Kind=${typeof kind === 'string' ? kind : ''}`;
}

/** What is applied, checked as upstream checks it before it is merged. Throws ApiError 400 and 500. */
export function appliedConfig(
  exchange: PatchInput,
  { info, patch, options }: Omit<Patching, 'current'>,
): UnstructuredObject {
  const value = cloneJson(patch.value) as UnstructuredObject;
  const { managedFields, name = '', namespace = '' } = (value.metadata ?? {}) as UnstructuredObject['metadata'];
  const expected = apiVersionOf(info);
  // The outermost of upstream's field managers (internal/versioncheck.go) looks at the whole type.
  if (value.apiVersion !== expected || value.kind !== info.kind) {
    throw badRequest(`invalid object type: ${gvkText(value)}`);
  }
  if (managedFields !== undefined) throw badRequest('metadata.managedFields must be nil');
  const whose = `${namespace}/${name}; ${gvkText(value)}`;
  const untyped = typingErrors(info.schema, value);
  if (untyped.length > 0) throw untypedConfig(whose, untyped);
  const object = admitDocument(exchange, {
    parsed: { value, duplicates: patch.duplicates, yaml: patch.yaml },
    info,
    fieldValidation: options.fieldValidation,
    dropStatus: false,
    withoutDefaults: true,
    keepNulls: true,
    applied: true,
    refuse: badRequest,
  });
  // Another name is reported after conflicts.
  object.metadata.name = exchange.info.name;
  return matched(exchange, object);
}
