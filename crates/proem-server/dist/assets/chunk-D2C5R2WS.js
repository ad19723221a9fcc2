import{f as e}from"./chunk-UH66V442.js";e();
