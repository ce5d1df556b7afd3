/** Request bodies to values: the face of the JSON and YAML readers. */
export { MAX_DEPTH, type ParsedJson, parseJson, parseJsonInPieces } from './read-json.ts';
export { parseYaml, parseYamlInPieces } from './read-yaml.ts';
