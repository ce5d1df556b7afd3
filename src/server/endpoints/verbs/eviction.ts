/**
 * POST `pods/<name>/eviction`: a delete that may be refused. Admission speaks first (KubeVirt turns the eviction of a
 * virt-launcher into a migration there), then the pod is deleted with the eviction's options.
 */
import type { ApiResponse } from '../../../base/http/seam.ts';
import { deleteObject } from '../../registry/delete.ts';
import { NO_ADMISSION } from '../../registry/write-call.ts';
import { readDeleteOptions } from '../delete-options.ts';
import type { Exchange } from '../exchange.ts';
import { parseWriteOptions } from '../query.ts';
import { documentResponse, successStatus } from '../responses.ts';
import { writeCall } from '../write-request.ts';
import { namedBody } from './binding.ts';
import { storedObject } from './get.ts';

export async function evictionVerb(exchange: Exchange): Promise<ApiResponse> {
  const write = parseWriteOptions(exchange.query, 'CreateOptions');
  const eviction = namedBody(exchange, 'Eviction');
  const { options, dryRun } = readDeleteOptions(eviction['deleteOptions'] ?? {});
  const call = writeCall(exchange, { ...write, dryRun: write.dryRun || dryRun });
  // Unknown pods are told apart before anyone is asked about them.
  storedObject(exchange);
  const subject = { name: call.name, object: eviction, oldObject: undefined };
  await call.admission.mutate('CREATE', subject);
  await call.admission.validate('CREATE', subject);
  await deleteObject(exchange.server.registry, { ...call, admission: NO_ADMISSION, options });
  return documentResponse(exchange, { status: 201, object: successStatus(201) });
}
