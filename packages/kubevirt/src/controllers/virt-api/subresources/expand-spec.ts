/** `expand-spec` of a virtual machine, and `expand-vm-spec` of one that the caller sends: what its instance type makes of it. */

import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { ApiError, badRequest, type FieldError, internalError, type Status } from '@coracle/apimachinery/meta/status';
import { pruneUnknown } from '@coracle/apimachinery/schema/prune';
import { validateSchema } from '@coracle/apimachinery/schema/validate';
import type { ApiResponse } from '@coracle/runtime/http/seam';
import { kubevirtResources, type VirtualMachine } from '../../../kinds/kubevirt.ts';
import { conflictsMessage } from '../../../rules/instancetype/conflicts.ts';
import { expandVirtualMachine } from '../../../rules/instancetype/expand.ts';
import { layersOf, readSources } from '../../../rules/instancetype/resolve.ts';
import { withDomain } from '../admission/mutate.ts';
import { sourceReader } from '../source-reader.ts';
import { json, messageOf, readBody } from './responses.ts';
import { type Call, fetchVm } from './subresource-context.ts';

/** GET virtualmachines/NAME/expand-spec. What cannot be found or applied is an internal error, as upstream has it. */
export async function expandSpecOfVm(call: Call): Promise<ApiResponse> {
  return json(200, await expanded(await fetchVm(call), call, (message) => internalError(message)));
}

/** PUT expand-vm-spec. Everything that is wrong with what was sent is a bad request. */
export async function expandVmSpec(call: Call): Promise<ApiResponse> {
  const vm = readVirtualMachine(call.request.body);
  const { namespace } = call.key;
  if (namespace === '') throw badRequest('The request namespace must not be empty');
  if (vm.metadata.namespace && vm.metadata.namespace !== namespace)
    throw badRequest(`VM namespace must be empty or ${namespace}`);
  vm.metadata.namespace = namespace;
  return json(200, await expanded(vm, call, badRequest));
}

async function expanded(vm: VirtualMachine, call: Call, fail: (message: string) => ApiError): Promise<VirtualMachine> {
  const { client, config } = call.options;
  let result: ReturnType<typeof expandVirtualMachine>;
  try {
    const found = await readSources(vm, sourceReader(client));
    for (const { type, ...resolved } of [found.instancetype, found.preference])
      if (type === 'missing') throw new Error((resolved as { message: string }).message);
    result = expandVirtualMachine(vm, layersOf(found), config());
  } catch (error) {
    throw fail(messageOf(error));
  }
  if (!result.ok) throw fail(conflictsMessage(result.conflicts));
  return result.vm;
}

/** As large as an object of the API may be. */
const MAX_BODY = 3 * 1024 * 1024;
const SCHEMA = kubevirtResources().find(({ kind, version }) => kind === 'VirtualMachine' && version === 'v1')!.schema;

function readVirtualMachine(body: Uint8Array): VirtualMachine {
  if (body.length === 0) throw badRequest('empty request body');
  const value = readBody(body, MAX_BODY) as Partial<VirtualMachine>;
  dropNulls(value);
  const { kind, spec, metadata } = value;
  // As when a machine is created: its domain may be left out.
  if (isJsonObject(spec?.template) && isOpen(spec.template.spec)) spec.template.spec = withDomain(spec.template.spec);
  const causes = [
    ...pruneUnknown(SCHEMA, value, { custom: true })
      .filter((path) => !/^(metadata|status)\b/.test(path))
      .map((path) => `${path.includes('.') ? path : `.${path}`} in body is a forbidden property`),
    ...validateSchema(SCHEMA, value, { custom: true }).map(textOf),
  ].map((message) => ({ message }));
  if (kind !== undefined && kind !== 'VirtualMachine')
    causes.push({ message: `kind in body should be VirtualMachine` });
  if (causes.length === 0 && spec?.template === undefined)
    causes.push({ message: 'spec.template in body is required' });
  if (causes.length > 0) {
    const details = { causes: causes as NonNullable<NonNullable<Status['details']>['causes']> };
    throw new ApiError({ code: 400, reason: 'BadRequest', message: 'Object is not a valid VirtualMachine', details });
  }
  return { ...(value as VirtualMachine), metadata: { ...metadata } };
}

/** Go clients write members of the metadata that they leave open as null: `creationTimestamp` always. */
function dropNulls(vm: Partial<VirtualMachine>): void {
  if (vm.status === null) delete vm.status;
  if (vm.metadata === null) delete vm.metadata;
  const { metadata } = vm as { metadata?: unknown };
  if (!isJsonObject(metadata)) return;
  for (const [member, value] of Object.entries(metadata)) if (value === null) delete metadata[member];
}

/** A finding in the words of OpenAPI: some of them name the field themselves. */
function textOf({ type, field, detail }: FieldError): string {
  const where = `${field} in body `;
  if (detail === undefined) return where + (type === 'FieldValueRequired' ? 'is required' : 'is invalid');
  return detail.startsWith(where) ? detail : where + detail;
}

/** Whether a domain may be filled into the spec of a template: what is of another type is the schema's to refuse. */
const isOpen = (spec: VirtualMachine['spec']['template']['spec']): boolean =>
  spec === undefined || (isJsonObject(spec) && (spec.domain === undefined || isJsonObject(spec.domain)));
