import{f as e}from"./chunk-PT7WKIYD.js";e();
