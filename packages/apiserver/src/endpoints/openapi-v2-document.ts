/** /openapi/v2: the whole API in one Swagger document, made when first asked for. */

import { joinBytes } from '@coracle/apimachinery/meta/join-bytes';
import { compactSteps } from '@coracle/apimachinery/meta/pretty-steps';
import { inPieces } from '@coracle/apimachinery/meta/steps';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import { mergeSwagger } from '../kinds/openapi/merge-swagger.ts';
import { OPENAPI_V2_PROTO_TYPES, openApiV2ProtoSteps } from '../kinds/openapi/openapi-v2-proto.ts';
import type { MakeSwagger } from './openapi-routes.ts';

/** Version 2 as a part of the server. */
export const swagger2: MakeSwagger = {
  protobufTypes: OPENAPI_V2_PROTO_TYPES,
  async make(infos, { form, others }) {
    // What makes it holds a text for every field: no process needs that before somebody asks.
    const { openApiV2Steps } = await import('../kinds/openapi/openapi-v2.ts');
    const document = mergeSwagger(await inPieces(openApiV2Steps(infos), nextTurn), others);
    return joinBytes(
      await inPieces(form === 'json' ? compactSteps(document) : openApiV2ProtoSteps(document), nextTurn),
    );
  },
};
