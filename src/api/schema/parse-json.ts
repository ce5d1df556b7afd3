/** Request bodies to values: the face of the JSON and YAML readers. */
export { MAX_DEPTH, type ParsedJson, parseJson } from './read-json.ts';
export { parseYaml } from './read-yaml.ts';
