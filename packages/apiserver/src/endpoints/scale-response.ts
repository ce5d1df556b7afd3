/** The answer of `/scale`: the Scale itself, or the columns upstream has for one (`kubectl get --subresource=scale`). */

import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { age } from '@coracle/apimachinery/types/age';
import type { PrinterColumn, ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { ApiResponse } from '@coracle/runtime/http/seam';
import { encodeObject } from '../registry/versioned-view.ts';
import type { Exchange } from './exchange.ts';
import { checkPartial, type Representation } from './negotiation.ts';
import { encodedResponse, representationOf } from './responses.ts';
import { CREATED_DESCRIPTION, NAME_DESCRIPTION, parseIncludeObject, partialOf, tableOf } from './table.ts';

type Columns = Pick<ResourceInfo, 'columns'>;

const count = (part: 'spec' | 'status') => (scale: Readonly<Record<string, unknown>>) => {
  const replicas = isJsonObject(scale[part]) ? scale[part]['replicas'] : undefined;
  return typeof replicas === 'number' ? replicas : 0;
};

const column = (column: Omit<PrinterColumn, 'priority'>): PrinterColumn => ({ ...column, priority: 0 });

/** Of a built-in kind (pkg/printers/internalversion, printScale): the counts are numbers, and 0 is shown. */
const BUILTIN: Columns = {
  columns: [
    column({ name: 'Name', type: 'string', description: NAME_DESCRIPTION }),
    column({
      name: 'Desired',
      type: 'integer',
      description: 'replicas is the desired number of instances for the scaled object.',
      cell: count('spec'),
    }),
    column({
      name: 'Available',
      type: 'integer',
      description: 'replicas is the actual number of observed instances of the scaled object.',
      cell: count('status'),
    }),
    column({ name: 'Age', type: 'string', description: CREATED_DESCRIPTION, cell: age }),
  ],
};

/** Of a custom resource (apiextensions-apiserver, getScaleColumnsForVersion): JSONPaths into the Scale. */
const CUSTOM: Columns = {
  columns: [
    column({ name: 'Desired', type: 'integer', description: 'Number of desired replicas', path: '.spec.replicas' }),
    column({ name: 'Available', type: 'integer', description: 'Number of actual replicas', path: '.status.replicas' }),
    column({ name: 'Age', type: 'date', description: CREATED_DESCRIPTION, path: '.metadata.creationTimestamp' }),
  ],
};

/** Throws ApiError 406. Upstream's handler of custom resources offers a Scale in protobuf and does not give it. */
export const scaleRepresentation = (exchange: Exchange): Representation =>
  representationOf(exchange, exchange.resource.strategy.custom ? {} : { protobuf: 'all' });

/** A Scale in the representation asked for. Throws ApiError 400 and 406. */
export function scaleResponse(exchange: Exchange, scale: Readonly<UnstructuredObject>): ApiResponse {
  const representation = scaleRepresentation(exchange);
  const { as, version } = representation;
  const { custom } = exchange.resource.strategy;
  if (as !== 'object') checkPartial(representation, false);
  const shown =
    as === 'object'
      ? scale
      : as === 'partial'
        ? partialOf(scale, version)
        : tableOf(custom ? CUSTOM : BUILTIN, {
            objects: [scale],
            version,
            includeObject: parseIncludeObject(exchange.query.get('includeObject')),
            now: exchange.server.clock.now(),
            definitions: true,
            metadata: { resourceVersion: scale.metadata.resourceVersion ?? '' },
          });
  return encodedResponse({ status: 200, bytes: encodeObject(shown), representation });
}
