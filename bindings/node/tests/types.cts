// The package for CommonJS.
import proem = require('proem')

const prompt: proem.Prompt = proem.buildSync({ system: 'a' })
export = prompt.digest
